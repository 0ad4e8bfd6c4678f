"""Asks the C library from many threads under ThreadSanitizer: ``python tests/threads.py [--threads 8] [--rounds 200]``

Threads share a handle, and open and close others of the same file. Any two that touch the same memory end the program, and so does
an answer that is not, bit for bit, that of one thread.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from compiled import PROGRAMS, THREADS, linked_program
from damage import small_models


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = linked_program(PROGRAMS / "threads.c", THREADS)
        for number, model in enumerate(small_models()):
            path = Path(folder) / f"{number}.stitch"
            model.save(path)
            done = subprocess.run([program, path, str(arguments.threads), str(arguments.rounds)], check=False)
            if done.returncode:
                sys.exit(f"model {number}: the program ended with {done.returncode}")


if __name__ == "__main__":
    main()
