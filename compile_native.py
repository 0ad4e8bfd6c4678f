"""Build hook: compiles the C library into the package, where there is a C compiler; without one the package is pure Python.

Two files and libm, so one call of the compiler does: `cc`, `gcc` or `clang`, or what ``CC`` names. The result knows nothing of
Python and chooses among AVX-512, AVX2 and plain code when it runs, so a wheel serves every Python and every processor of its
platform.
``STITCHWORK_NATIVE=0`` builds without it, ``STITCHWORK_NATIVE=1`` makes a failure an error.

``python compile_native.py --wasm`` compiles the same file to WebAssembly, with which the page answers: `stitchwork.wasm`, which is
kept beside the source, so that only those who change the source need that compiler (``pip install ziglang``).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
    from packaging.tags import sys_tags
except ImportError:  # run as a command, not as a hook
    BuildHookInterface = object

FOLDER = Path(__file__).parent / "src" / "stitchwork" / "native"
NAME = {"win32": "stitchwork.dll", "darwin": "libstitchwork.dylib"}.get(sys.platform, "libstitchwork.so")
SOURCES = [FOLDER / name for name in ("stitchwork.c", "fmi.c")]
FLAGS = ["-std=gnu99", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fvisibility=hidden", "-DST_SHARED"]

WASM = FOLDER / "stitchwork.wasm"
WASM_MADE = FOLDER / "stitchwork.wasm.sha256"
ZIGLANG = "0.17.0"  # which made the file that is kept; others make another one, with the same answers
# A library without a main program, that owns its memory; by -O2 it is half again as large as by -Os, and as fast again by half.
WASM_FLAGS = ["-target", "wasm32-wasi", "-mexec-model=reactor", "-std=gnu99", "-O2", "-msimd128", "-fno-math-errno"]
WASM_FLAGS += ["-fno-trapping-math", "-fvisibility=hidden", "-DST_SHARED", "-Wl,--export-dynamic", "-Wl,--strip-all"]
WASM_FLAGS += ["-Wl,--export=malloc", "-Wl,--export=free"]


def find_compiler() -> list[str] | None:
    """The command of a C compiler, or None."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    return next(([name] for name in ("cc", "gcc", "clang") if shutil.which(name)), None)


def compile_library(target: Path) -> str | None:
    """Compile the library to ``target``; what went wrong, or None."""
    compiler = find_compiler()
    if compiler is None:
        return "no C compiler was found"
    shared = ["-dynamiclib"] if sys.platform == "darwin" else ["-shared", *([] if sys.platform == "win32" else ["-fPIC"])]
    try:
        done = subprocess.run(
            [*compiler, *FLAGS, *shared, *map(str, SOURCES), "-lm", "-o", str(target)],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        return f"{compiler[0]} cannot be run ({error})"
    return done.stderr.strip() or f"{compiler[0]} failed" if done.returncode else None


class NativeLibrary(BuildHookInterface):
    """Adds the library to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and tell the wheel which platform it is for."""
        wanted, target = os.environ.get("STITCHWORK_NATIVE"), FOLDER / NAME
        target.unlink(missing_ok=True)
        problem = "STITCHWORK_NATIVE=0" if wanted == "0" else compile_library(target)
        if problem is None:
            platform = next(iter(sys_tags())).platform
            build_data |= {"pure_python": False, "tag": f"py3-none-{platform}"}
        elif wanted == "1":
            raise RuntimeError(f"The compiled library could not be built: {problem}")
        else:
            self.app.display_warning(f"stitchwork is built without its compiled library, so NumPy answers: {problem}")


def compile_wasm(target: Path = WASM) -> None:
    """Compile the library to WebAssembly with `ziglang`, a C compiler that comes as a Python package."""
    command = [sys.executable, "-m", "ziglang", "cc", *WASM_FLAGS, "stitchwork.c", "-o", str(target.resolve())]
    subprocess.run(command, check=True, cwd=FOLDER)
    target.chmod(0o644)


def wasm_record() -> str:
    """Hashes of what `stitchwork.wasm` is made of, sources and flags, and of the file: tests compare without compiling."""
    parts = [(FOLDER / name).read_bytes() for name in ("stitchwork.c", "stitchwork.h")] + [" ".join(WASM_FLAGS).encode()]
    source = sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()
    return f"{source} sources and flags\n{sha256(WASM.read_bytes()).hexdigest()} {WASM.name}\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--wasm"]:
        sys.exit("usage: python compile_native.py --wasm")
    compile_wasm()
    WASM_MADE.write_text(wasm_record())
    print(f"{WASM}: {WASM.stat().st_size:,} bytes")
