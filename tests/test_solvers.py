"""Tables of a fluid, in small: what `benchmarks.solvers` does at its full size holds at a tenth of it."""

import sys
from pathlib import Path

import numpy as np
import pytest

from stitchwork import StitchedRegressor

pytest.importorskip("CoolProp", reason="needs CoolProp: pip install 'stitchwork[bench]'")
sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.solvers import Fluid, answers, errors, features, line_model, slopes


@pytest.fixture(scope="module")
def fluid():
    return Fluid("CO2")


@pytest.mark.parametrize("variables", ["rho-u", "p-h"])
def test_a_table_of_2000_states_has_the_equation_of_state_and_its_derivatives(fluid, variables):
    points = fluid.outside(2000, 0, True)
    points = points.take(np.flatnonzero(points.p > 5e4))
    model = StitchedRegressor().fit(features(points, variables), answers(points, variables))
    tests = fluid.outside(500, 7, False)
    found = errors(model, tests, fluid.far(tests), variables)
    # A tenth of the points of the benchmark, whose bar is 1e-6 in the median: smooth tables lose a factor of some hundred.
    assert found["T"]["median"] < 1e-6
    assert found["T"]["worst far"] < 1e-2
    near = slopes(fluid, model, tests, variables, np.flatnonzero(fluid.far(tests))[:100])
    assert max(near.values()) < 1e-4  # a derivative has an order less


@pytest.mark.parametrize("variables", ["rho-u", "p-h"])
def test_the_saturation_line_tells_the_phases(fluid, variables):
    between = line_model(fluid, variables)
    assert not between(fluid.outside(500, 7, False)).any()
    assert between(fluid.inside(500, 8, False)).mean() > 0.999


def test_states_between_the_phases_are_those_of_coolprop(fluid):
    import CoolProp

    states = fluid.inside(50, 1, False)
    for row in range(50):
        fluid.state.update(CoolProp.DmassT_INPUTS, states.rho[row], states.T[row])
        assert fluid.state.umass() == pytest.approx(states.u[row], rel=1e-9)
        assert fluid.state.p() == pytest.approx(states.p[row], rel=1e-9)
