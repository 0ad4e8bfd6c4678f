"""A few seconds of the mixed work of `soak.py`, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured by /proc")
def test_mixed_work_in_threads_gives_right_answers():
    command = [sys.executable, Path(__file__).parent / "soak.py", "--minutes", "0.1", "--threads", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 failures" in done.stdout
