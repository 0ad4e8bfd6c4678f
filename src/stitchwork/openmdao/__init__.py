"""A fitted model as a component of OpenMDAO, with exact partial derivatives.

`StitchedComponent` asks the model for values in `compute` and for its gradient in `compute_partials`, so that an optimiser sees no
differences. OpenMDAO is needed: ``pip install 'stitchwork[openmdao]'``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._extras import need
from .._loading import load
from .._regressor import StitchedRegressor
from ..model.stitched import StitchedModel

ExplicitComponent: Any = need("openmdao.api", "`StitchedComponent`", "openmdao").ExplicitComponent
valid_units: Any = need("openmdao.utils.units", "`StitchedComponent`", "openmdao").valid_units

__all__ = ["StitchedComponent"]


class StitchedComponent(ExplicitComponent):
    """Outputs of a fitted model as explicit functions of its features.

    Every feature is an input and every output of the model an output, each an array of `vec_size` numbers. They have the names
    that the data had at the fit, with signs that OpenMDAO does not allow replaced by underscores, or x0, x1, … and y, or y0, y1, …;
    units are those of the data where OpenMDAO knows them.

    Parameters
    ----------
    model : `StitchedRegressor` or path of a file that `save` wrote
        Fitted, with continuous first derivatives.
    vec_size : int, default=1
        Points that are evaluated at once.

    Examples
    --------
    >>> import numpy as np
    >>> import openmdao.api as om
    >>> from stitchwork import StitchedRegressor
    >>> from stitchwork.openmdao import StitchedComponent
    >>> X = np.random.default_rng(0).uniform(-2, 2, (400, 2))
    >>> bowl = StitchedRegressor().fit(X, (X[:, 0] - 0.5) ** 2 + (X[:, 1] + 1) ** 2)
    >>> problem = om.Problem()
    >>> _ = problem.model.add_subsystem("bowl", StitchedComponent(model=bowl), promotes=["*"])
    >>> problem.driver = om.ScipyOptimizeDriver(optimizer="SLSQP", disp=False)
    >>> problem.model.add_design_var("x0", -2, 2)
    >>> problem.model.add_design_var("x1", -2, 2)
    >>> problem.model.add_objective("y")
    >>> _ = problem.setup()
    >>> _ = problem.run_driver()
    >>> np.round([problem["x0"][0], problem["x1"][0]], 2)
    array([ 0.5, -1. ])
    """

    def initialize(self) -> None:
        """Declare the options.

        Examples
        --------
        >>> from stitchwork.openmdao import StitchedComponent
        >>> StitchedComponent(vec_size=3).options["vec_size"]
        3
        """
        self.options.declare("model", default=None, desc="a fitted StitchedRegressor, or the path of a saved one")
        self.options.declare("vec_size", default=1, types=int, lower=1, desc="points that are evaluated at once")

    def setup(self) -> None:
        """Declare inputs, outputs and where partial derivatives are.

        Examples
        --------
        >>> from stitchwork import StitchedRegressor
        >>> import openmdao.api as om
        >>> problem = om.Problem()
        >>> line = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> _ = problem.model.add_subsystem("line", StitchedComponent(model=line))
        >>> _ = problem.setup()
        >>> problem.set_val("line.x0", 1.5)
        >>> problem.run_model()
        >>> problem.get_val("line.y").round(4)
        array([4.])
        """
        self._model = model = _fitted(self.options["model"])
        n = self.options["vec_size"]
        self._features, self._targets = _allowed(model.feature_names), _allowed(model.target_names)
        both = {*self._features} & {*self._targets}
        if both:
            raise ValueError(f"`model` has features and outputs of the same name: {', '.join(sorted(both))}. Rename the columns.")
        middle = np.median(model.X, axis=0)
        for name, column, value in zip(self._features, model.feature_names, middle, strict=True):
            self.add_input(name, val=np.full(n, value), units=_unit(model.origin.attributes, column))
        each = np.arange(n)
        for name, column in zip(self._targets, model.target_names, strict=True):
            self.add_output(name, val=np.zeros(n), units=_unit(model.origin.attributes, column))
            self.declare_partials(name, self._features, rows=each, cols=each)

    def compute(self, inputs: Any, outputs: Any) -> None:
        """Values at the inputs, as OpenMDAO asks for them.

        Examples
        --------
        >>> import openmdao.api as om
        >>> square = StitchedRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 4.0, 9.0])
        >>> problem = om.Problem()
        >>> _ = problem.model.add_subsystem("square", StitchedComponent(model=square, vec_size=2), promotes=["*"])
        >>> _ = problem.setup()
        >>> problem.set_val("x0", [1.0, 3.0])
        >>> problem.run_model()
        >>> problem.get_val("y").round(6)
        array([1., 9.])
        """
        for name, column in zip(self._targets, self._model.jet(self._points(inputs), 0).value.T, strict=True):
            outputs[name] = column

    def compute_partials(self, inputs: Any, partials: Any) -> None:
        """Exact derivatives at the inputs.

        Examples
        --------
        >>> import openmdao.api as om
        >>> line = StitchedRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
        >>> problem = om.Problem()
        >>> _ = problem.model.add_subsystem("line", StitchedComponent(model=line), promotes=["*"])
        >>> _ = problem.setup()
        >>> problem.run_model()
        >>> problem.compute_totals("y", "x0")["y", "x0"]
        array([[2.]])
        """
        gradient = self._model.jet(self._points(inputs), 1).gradient
        for o, target in enumerate(self._targets):
            for k, feature in enumerate(self._features):
                partials[target, feature] = gradient[:, o, k]

    def _points(self, inputs: Any) -> Any:
        return np.stack([np.ravel(inputs[name]) for name in self._features], axis=1)


def _fitted(model: Any) -> StitchedModel:
    """The function that a regressor or a file holds."""
    if isinstance(model, str | os.PathLike):
        model = load(model)
    if not isinstance(model, StitchedRegressor):
        raise TypeError(f"`model` must be a fitted StitchedRegressor or the path of a saved one, got {type(model).__name__}.")
    check_is_fitted(model)
    found = model.model_
    if found.smoothness < 1:
        raise ValueError(
            f"`model` must have continuous derivatives, and its smoothness_ is {found.smoothness}. Choose a smoother kernel or"
            " weight."
        )
    return found


def _allowed(names: list[str]) -> list[str]:
    """Names that OpenMDAO takes: letters, digits and underscores, each once."""
    found: list[str] = []
    for name in names:
        plain = re.sub(r"\W", "_", name)
        plain = plain if plain[:1].isalpha() else f"v{plain}"
        while plain in found:
            plain += "_"
        found.append(plain)
    return found


def _unit(attributes: Mapping[str, Mapping[str, str]], column: str) -> str | None:
    """The unit of a column, where it has one that OpenMDAO knows."""
    unit = attributes.get(column, {}).get("units")
    return unit if unit and valid_units(unit) else None
