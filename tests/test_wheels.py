"""Wheels of every platform: well formed, named for what is inside, and the libraries in them give the golden answers."""

import importlib.util
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import stitchwork.native

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"

if not all(importlib.util.find_spec(name) for name in ("ziglang", "build", "hatchling")):
    pytest.skip("needs the cross compiler: pip install '.[wheels]'", allow_module_level=True)
sys.path.insert(0, str(ROOT))
from tools.wheels import FLAGS, PLATFORMS, add_library, build_pure, cross_compile, cross_compiler  # noqa: E402

# The release sets STITCHWORK_RELEASE and tests what it ships. Otherwise the libraries are compiled without optimisation, in a
# second each instead of twenty.
QUICK = ["-O0", "-fno-sanitize=undefined"]
SHIPPED = os.environ.get("STITCHWORK_RELEASE") == "1"
COMPILED = FLAGS if SHIPPED else [*(flag for flag in FLAGS if flag != "-O3"), *QUICK]


@pytest.fixture(scope="module")
def pure(tmp_path_factory):
    return build_pure(tmp_path_factory.mktemp("pure"))


@pytest.fixture(scope="module")
def wheel_of(pure, tmp_path_factory):
    """A function that makes the wheel of a platform, once."""
    made = {}

    def make(platform):
        if platform not in made:
            folder = tmp_path_factory.mktemp(platform)
            made[platform] = add_library(pure[1], cross_compile(platform, folder, COMPILED), platform, folder)
        return made[platform]

    return make


@pytest.fixture
def library_of(wheel_of, tmp_path):
    """A function that takes the library out of the wheel of a platform."""

    def unpack(platform):
        name = f"stitchwork/native/{PLATFORMS[platform].library}"
        with zipfile.ZipFile(wheel_of(platform)) as wheel:
            return Path(wheel.extract(name, tmp_path))

    return unpack


def test_the_source_distribution_has_no_library_but_all_sources(pure):
    import tarfile

    with tarfile.open(pure[0]) as sources:
        names = sources.getnames()
    assert not [name for name in names if name.endswith((".so", ".dylib", ".dll"))]
    ends = ("stitchwork.c", "stitchwork.h", "compile_native.py", "tools/wheels.py")
    assert all(any(name.endswith(end) for name in names) for end in ends)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_a_wheel_is_the_pure_one_with_a_library_and_a_record_of_all(platform, pure, wheel_of):
    with zipfile.ZipFile(wheel_of(platform)) as wheel, zipfile.ZipFile(pure[1]) as plain:
        assert wheel.testzip() is None
        library = f"stitchwork/native/{PLATFORMS[platform].library}"
        assert set(wheel.namelist()) == {*plain.namelist(), library}
        info = next(name for name in wheel.namelist() if name.endswith("/WHEEL"))
        about = wheel.read(info).decode()
        assert f"Tag: py3-none-{platform}\n" in about
        assert "Root-Is-Purelib: false" in about
        recorded = [line.split(",")[0] for line in wheel.read(info.replace("WHEEL", "RECORD")).decode().splitlines()]
        assert sorted(recorded) == sorted(wheel.namelist())
    if importlib.util.find_spec("twine"):
        done = subprocess.run(
            [sys.executable, "-m", "twine", "check", "--strict", wheel_of(platform)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("platform", [name for name in PLATFORMS if "linux" in name])
def test_auditwheel_agrees_with_the_name_of_a_linux_wheel(platform, wheel_of, tmp_path):
    if not importlib.util.find_spec("auditwheel"):
        pytest.skip("there is no auditwheel: pip install '.[wheels]'")
    command = [sys.executable, "-m", "auditwheel", "show", "--ldpaths", tmp_path, wheel_of(platform)]  # no library of this machine
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stdout.split())
    family, (major, minor) = platform.split("_")[0], map(int, platform.split("_")[1:3])
    machine = platform.split("_", 3)[3]
    tags = re.findall(rf"{family}_\d+_\d+_{machine}", said.partition("consistent with")[2].partition(".")[0])
    assert tags, said
    # The library may be consistent with an older system than its name asks for, not with a newer one alone.
    assert all(tuple(map(int, tag.split("_")[1:3])) <= (major, minor) for tag in tags), said


MACHINES = {"x86_64": 0x01000007, "arm64": 0x0100000C}


@pytest.mark.parametrize("platform", [name for name in PLATFORMS if "macos" in name])
def test_a_library_for_macos_is_for_its_processor_and_system_and_signed(platform, library_of):
    """By the commands of its Mach-O header: 0x1d is a signature, without which Apple's processors run nothing; 0x32 the system."""
    data = library_of(platform).read_bytes()
    magic, machine, _, kind, count = struct.unpack_from("<5I", data)
    assert (magic, machine, kind) == (0xFEEDFACF, MACHINES[platform.split("_", 3)[3]], 6)
    found, at = {}, 32
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        found[command], at = at, at + size
    if "arm64" in platform:
        assert 0x1D in found
    system, least = struct.unpack_from("<2I", data, found[0x32] + 8)
    assert (system, least >> 16) == (1, 11)
    assert b"st_open" in data


def runner_of(platform, folder):
    """The command that runs programs of a platform here with its environment, or a skip with the reason."""
    machine = os.uname().machine if hasattr(os, "uname") else ""
    if platform == "win_amd64":
        wine = shutil.which("wine64") or shutil.which("wine")
        if wine is None:
            pytest.skip("there is no wine to run programs for Windows")
        return [wine], {"WINEPREFIX": str(folder / "prefix"), "WINEDEBUG": "-all", "DISPLAY": ""}
    if sys.platform != "linux" or "linux" not in platform:
        pytest.skip(f"programs for {platform} do not run on this system")
    if platform.endswith(machine):
        loader = Path("/lib/ld-musl-x86_64.so.1")
        if "musl" in platform and not loader.exists():
            pytest.skip("there is no loader of musl: apt-get install musl")
        return [], {}
    qemu, glibc = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static"), Path("/usr/aarch64-linux-gnu")
    if not platform.endswith("aarch64") or qemu is None:
        pytest.skip(f"there is no emulator of {platform}: apt-get install qemu-user")
    if not (glibc / "lib" / "ld-linux-aarch64.so.1").exists():
        pytest.skip("there is no C library of that processor: apt-get install libc6-arm64-cross")
    return [qemu, "-E", "LD_PRELOAD=libm.so.6", "-L", str(glibc)], {}


@pytest.mark.parametrize("platform", [name for name in PLATFORMS if "macos" not in name])
def test_a_library_gives_the_golden_answers_on_its_platform(platform, library_of, tmp_path):
    runner, environment = runner_of(platform, tmp_path)
    # musl's loader of another processor is not packaged. The library names no C library, so a program of glibc can load it.
    system = platform.replace("musllinux_1_2_aarch64", "manylinux_2_28_aarch64")
    program = tmp_path / ("golden.exe" if platform == "win_amd64" else "golden")
    source, include = Path(__file__).parent / "native" / "golden.c", stitchwork.native.include_dir()
    linked = ["-dynamic"] if "musl" in system else ["-ldl"] if "manylinux" in system else []
    # Stripped, like the library, so that the compiler takes the same C library from its cache: for Windows it takes a minute.
    flags = [*(["-O2"] if SHIPPED else QUICK), "-s", f"-I{include}", *linked]
    subprocess.run([*cross_compiler(system), *flags, str(source), "-lm", "-o", str(program)], check=True)
    golden = json.loads((GOLDEN / "formats.json").read_text())["8"]
    points = "\n".join(" ".join(map(repr, x)) for x in golden["X"])
    done = subprocess.run(
        [*runner, str(program), str(library_of(platform)), str(GOLDEN / "format8.stitch")],
        input=points,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )
    assert done.returncode == 0, done.stderr
    found = np.array([line.split() for line in done.stdout.splitlines()], dtype=float)
    n, t = np.shape(golden["prediction"])
    # Rounding of what was recorded, as `test_storage` allows it.
    np.testing.assert_allclose(found[:, :t], golden["prediction"], rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found[:, t:], np.reshape(golden["gradient"], (n, -1)), rtol=1e-6, atol=1e-7)
