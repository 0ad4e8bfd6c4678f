"""Build hook: compiles the C library into the package, where there is a C compiler; without one the package is pure Python.

Two files and libm, so one call of the compiler does: `cc`, `gcc` or `clang`, or what ``CC`` names. The result knows nothing of
Python and chooses among AVX-512, AVX2 and plain code when it runs, so a wheel serves every Python and every processor of its
platform.
``STITCHWORK_NATIVE=0`` builds without it, ``STITCHWORK_NATIVE=1`` makes a failure an error.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags

FOLDER = Path(__file__).parent / "src" / "stitchwork" / "native"
NAME = {"win32": "stitchwork.dll", "darwin": "libstitchwork.dylib"}.get(sys.platform, "libstitchwork.so")
SOURCES = [FOLDER / name for name in ("stitchwork.c", "fmi.c")]
FLAGS = ["-std=gnu99", "-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fvisibility=hidden", "-DST_SHARED"]


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
