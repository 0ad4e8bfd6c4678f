"""Some data sets of the fuzz tool: it still runs, and what it checks holds. Long runs are a command: `python tests/fuzz.py`."""

import sys

import pytest
from fuzz import Case, Violated, expect, run_case


@pytest.mark.skipif(sys.platform == "win32", reason="the tool uses SIGALRM")
@pytest.mark.parametrize("number", range(12))
def test_hostile_data_are_answered_as_promised(number):
    found = {}

    def record(check, error, figure=None):
        found[check] = error

    run_case(Case(5, number, largest=60, plain=True), record)
    assert {check: error for check, error in found.items() if error is not None} == {}
    assert {"fit", "finite", "rounding"} <= set(found)


def test_the_tool_can_find_something():
    with pytest.raises(Violated, match="as it should"):
        expect([True, False], "as it should")
