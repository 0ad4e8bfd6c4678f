"""Wheels for every platform, from one machine: ``python -m tools.wheels [--out dist] [platform …]``

The package is built once without its library, from its own source distribution. For each platform the C sources are then
cross-compiled by the Zig toolchain (``pip install '.[wheels]'``) and put into a copy of that wheel, which is named for the
platform. The library knows nothing of Python, so that one wheel serves every version of it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
from compile_native import FLAGS, SOURCES  # noqa: E402

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # of zip files: the same sources give the same bytes


class Platform(NamedTuple):
    """Where a library runs: the compiler's name of it, the name of the library there, and flags that link it."""

    target: str
    library: str
    flags: tuple[str, ...]


_GLIBC = ("libstitchwork.so", ("-shared", "-lm"))
# The process has loaded musl already. Its file has different names on different systems, so the library names none.
_MUSL = ("libstitchwork.so", ("-shared", "-nostdlib"))
_MACOS = ("libstitchwork.dylib", ("-dynamiclib", "-Wl,-install_name,@rpath/libstitchwork.dylib"))
PLATFORMS = {
    "manylinux_2_28_x86_64": Platform("x86_64-linux-gnu.2.28", *_GLIBC),
    "manylinux_2_28_aarch64": Platform("aarch64-linux-gnu.2.28", *_GLIBC),
    "musllinux_1_2_x86_64": Platform("x86_64-linux-musl", *_MUSL),
    "musllinux_1_2_aarch64": Platform("aarch64-linux-musl", *_MUSL),
    "macosx_11_0_x86_64": Platform("x86_64-macos.11.0", *_MACOS),
    "macosx_11_0_arm64": Platform("aarch64-macos.11.0", *_MACOS),
    "win_amd64": Platform("x86_64-windows-gnu", "stitchwork.dll", ("-shared",)),
}


def cross_compiler(platform: str) -> list[str]:
    """The command of the C compiler for a platform."""
    return [sys.executable, "-m", "ziglang", "cc", "-target", PLATFORMS[platform].target]


def cross_compile(platform: str, folder: Path, flags: Sequence[str] = FLAGS) -> Path:
    """Compile the library for a platform into ``folder``; its path."""
    compiler, library, compiled = cross_compiler(platform), folder / PLATFORMS[platform].library, []
    position = [] if platform.startswith("win") else ["-fPIC"]
    for source in SOURCES:
        compiled.append(str(folder / f"{platform}-{source.stem}.o"))
        subprocess.run([*compiler, *flags, *position, "-g0", "-c", str(source), "-o", compiled[-1]], check=True)
    subprocess.run([*compiler, *compiled, "-s", *PLATFORMS[platform].flags, "-o", str(library)], check=True)
    return library


def build_pure(folder: Path) -> tuple[Path, Path]:
    """The source distribution, and the wheel without the library that is built from it, in ``folder``."""
    environment = os.environ | {"STITCHWORK_NATIVE": "0"}
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], check=True, env=environment)
    return next(folder.glob("*.tar.gz")), next(folder.glob("*-none-any.whl"))


def add_library(wheel: Path, library: Path, platform: str, folder: Path) -> Path:
    """A copy of the pure ``wheel`` with a library in it, named for its platform, in ``folder``."""
    tag = f"py3-none-{platform}"
    target = folder / wheel.name.replace("py3-none-any", tag)
    with zipfile.ZipFile(wheel) as pure:
        contents = {name: pure.read(name) for name in pure.namelist()}
    info = next(name.partition("/")[0] for name in contents if name.endswith(".dist-info/WHEEL"))
    about = contents[f"{info}/WHEEL"].replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false")
    contents[f"{info}/WHEEL"] = about.replace(b"Tag: py3-none-any", f"Tag: {tag}".encode())
    contents[f"stitchwork/native/{library.name}"] = library.read_bytes()
    record = f"{info}/RECORD"
    del contents[record]
    lines = [f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in contents.items()]
    contents[record] = "".join([*lines, f"{record},,\n"]).encode()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in contents.items():
            entry = zipfile.ZipInfo(name, _FIRST_DAY)
            mode = 0o755 if name.endswith(library.name) else 0o644
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            made.writestr(entry, data)
    return target


def _digest(data: bytes) -> str:
    return urlsafe_b64encode(sha256(data).digest()).rstrip(b"=").decode()


def build_wheels(platforms: list[str], folder: Path) -> list[Path]:
    """The source distribution and the wheels of ``platforms``, written to ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        sources, pure = build_pure(Path(place))
        made = [folder / sources.name]
        made[0].write_bytes(sources.read_bytes())
        for platform in platforms:
            made.append(add_library(pure, cross_compile(platform, Path(place)), platform, folder))
    return made


def main() -> None:
    """Build what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platforms", nargs="*", metavar="platform", help=f"of {', '.join(PLATFORMS)}; all without any")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder of the wheels (dist)")
    arguments = parser.parse_args()
    unknown = set(arguments.platforms) - set(PLATFORMS)
    if unknown:
        parser.error(f"unknown platform {', '.join(sorted(unknown))}; there are {', '.join(PLATFORMS)}")
    for path in build_wheels(arguments.platforms or list(PLATFORMS), arguments.out):
        print(f"{path.name}  {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
