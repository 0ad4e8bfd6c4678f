"""A model as a component of OpenMDAO: exact partials, names and units of the data, and an optimum that can be known."""

import numpy as np
import pytest

from stitchwork import StitchedRegressor

om = pytest.importorskip("openmdao.api", reason="needs OpenMDAO: pip install '.[openmdao]'")
from stitchwork.openmdao import StitchedComponent  # noqa: E402


def sample(n=600):
    X = np.random.default_rng(0).uniform(-2, 2, (n, 2))
    return X, np.c_[np.sin(X[:, 0]) * X[:, 1], X[:, 0] ** 2 + 0.5 * X[:, 1]]


def problem_of(component):
    problem = om.Problem(reports=False)
    problem.model.add_subsystem("component", component, promotes=["*"])
    problem.setup()
    return problem


def test_partials_are_those_of_the_model_at_many_points_and_outputs():
    model = StitchedRegressor(kernel="gaussian").fit(*sample())
    Q = np.random.default_rng(1).uniform(-2, 2, (7, 2))
    problem = problem_of(StitchedComponent(model=model, vec_size=7))
    for k in range(2):
        problem.set_val(f"x{k}", Q[:, k])
    problem.run_model()
    value, gradient = model.predict(Q), model.gradient(Q)
    for o in range(2):
        np.testing.assert_array_equal(problem.get_val(f"y{o}"), value[:, o])
    totals = problem.compute_totals(["y0", "y1"], ["x0", "x1"])
    for o in range(2):
        for k in range(2):
            np.testing.assert_allclose(totals[f"y{o}", f"x{k}"], np.diag(gradient[:, o, k]), rtol=1e-14, atol=1e-14)


def test_openmdao_finds_the_partials_right():
    problem = problem_of(StitchedComponent(model=StitchedRegressor(kernel="gaussian", ridge=1e-8).fit(*sample())))
    problem.run_model()
    checked = problem.check_partials(out_stream=None, method="fd", form="central", step=1e-4)
    for pairs in checked.values():
        for entry in pairs.values():
            # central differences of step 1e-4 are wrong by 1e-8 of a third derivative, which is at most some ten
            np.testing.assert_allclose(entry["J_fwd"], entry["J_fd"], atol=1e-6)


def test_names_and_units_are_those_of_the_data(tmp_path):
    pd = pytest.importorskip("pandas")
    X, Y = sample()
    frame = pd.DataFrame(X, columns=["mass flow", "T"])
    frame.attrs["units"] = {"mass flow": "kg/s", "T": "furlongs per candle"}
    StitchedRegressor(kernel="gaussian").fit(frame, pd.Series(Y[:, 0], name="power")).save(tmp_path / "m.stitch")
    problem = problem_of(StitchedComponent(model=str(tmp_path / "m.stitch")))
    problem.set_val("mass_flow", 360.0, units="kg/h")
    problem.run_model()
    assert problem.get_val("mass_flow", units="kg/s")[0] == pytest.approx(0.1)
    assert problem.get_val("power").shape == (1,)


def test_a_constrained_optimum_is_that_of_the_function():
    """The point of a curve, known by a model, that is nearest to (2, 0.5): its tangent is normal to the way there."""
    from scipy.optimize import brentq

    X = np.random.default_rng(0).uniform(0.2, 4, (1500, 2))
    curve = StitchedRegressor().fit(X, np.sin(X[:, 0]) * np.exp(-0.2 * X[:, 1]))
    problem = om.Problem(reports=False)
    problem.model.add_subsystem("curve", StitchedComponent(model=curve), promotes=["*"])
    distance = om.ExecComp("distance = (x0 - 2)**2 + (x1 - 0.5)**2")
    problem.model.add_subsystem("distance", distance, promotes=["*"])
    problem.driver = om.ScipyOptimizeDriver(optimizer="SLSQP", tol=1e-12, disp=False)
    problem.model.add_design_var("x0", 0.3, 3.9)
    problem.model.add_design_var("x1", 0.3, 3.9)
    problem.model.add_constraint("y", equals=0.5)
    problem.model.add_objective("distance")
    problem.model.set_input_defaults("x0", 2.3)
    problem.model.set_input_defaults("x1", 1.0)
    problem.setup()
    problem.run_driver()
    assert problem.driver.result.success
    found = np.array([problem.get_val("x0")[0], problem.get_val("x1")[0]])

    def on_curve(x):  # sin x e^(-y/5) = 1/2
        return np.array([x, 5 * np.log(2 * np.sin(x))])

    def stationary(x):  # the tangent of the curve is normal to the way to the point
        tangent = np.array([1.0, 5 / np.tan(x)])
        return float(tangent @ (on_curve(x) - [2.0, 0.5]))

    exact = on_curve(brentq(stationary, 1.8, 2.55))
    np.testing.assert_allclose(found, exact, atol=1e-6)  # SLSQP stops at 1e-12 of a square


def test_what_is_no_smooth_model_is_refused():
    with pytest.raises(TypeError, match="`model` must be a fitted StitchedRegressor"):
        problem_of(StitchedComponent(model=3))
    rough = StitchedRegressor(kernel="linear", selection=None).fit(*sample())
    with pytest.raises(ValueError, match="continuous derivatives"):
        problem_of(StitchedComponent(model=rough))
