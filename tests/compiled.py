"""Objects and programs of C, C++ and Fortran, compiled once: kept by the hash of the compiler, its flags and all sources."""

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import stitchwork.native

NATIVE = Path(stitchwork.native.include_dir())
PROGRAMS = Path(__file__).parent / "native"
KEPT = Path(__file__).parents[1] / ".pytest_cache" / "d" / "compiled"  # --cache-clear empties it

STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror")
# -O0 compiles four times as fast as -O1 under sanitizers, and leaves more for them to see.
SANITIZED = ("-std=gnu99", "-g", "-O0", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all")
ADDRESSES = (*SANITIZED, "-fsanitize=address")
# Undefined behaviour is a matter of the source, which all engines share: one of them will do.
SANITIZERS = (*SANITIZED, "-fsanitize=address,undefined", "-DST_ONE_ENGINE")
THREADS = (*SANITIZED, "-fsanitize=thread", "-pthread", "-DST_ONE_ENGINE")


def compiled(name, *sources, flags=STRICT, compiler="cc"):
    """The file that ``compiler`` makes of ``sources``: an object if ``flags`` hold -c, else a program.

    Objects among the sources are read, too, and so is every file of the library, which sources may include.
    """
    version = subprocess.run([compiler, "--version"], capture_output=True, check=True).stdout
    library = [path for path in sorted(NATIVE.iterdir()) if path.suffix in (".c", ".h", ".hpp", ".f90")]
    parts = [version, repr(flags).encode(), *(Path(path).read_bytes() for path in (*sources, *library))]
    key = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]
    target = KEPT / f"{name}-{key}{'.o' if '-c' in flags else ''}"
    if target.exists():
        return target
    KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=KEPT) as folder:
        made = Path(folder) / target.name
        command = [compiler, *flags, f"-I{NATIVE}", *map(str, sources), *([] if "-c" in flags else ["-lm"]), "-o", str(made)]
        subprocess.run(command, check=True, cwd=folder)
        os.replace(made, target)
    return target


def library_object(flags=STRICT):
    """`stitchwork.c` as an object."""
    return compiled("stitchwork", NATIVE / "stitchwork.c", flags=(*flags, "-c"))


def linked_program(source, flags=STRICT):
    """The program of a C file, linked with the library, both compiled with ``flags``."""
    return compiled(Path(source).stem, source, library_object(flags), flags=flags)
