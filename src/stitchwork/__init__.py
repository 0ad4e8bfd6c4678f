"""stitchwork: many small models, stitched into one smooth function with exact derivatives.

The method is PU-KRR-POLY of "Locally Adaptive and Differentiable Regression" (Han, Shankar, Ye, Phillips):

1. Cover the points by balls around some of them that hold h points each (`fitting/cover`).
2. In each ball, fit a kernel expansion plus a polynomial by one small ridge-regularised block system, the kernel part
   orthogonal to the polynomial (`local/system`). Kernel, bandwidth, ridge and degree are chosen by closed-form leave-one-out,
   pooled over neighbouring regions (`fitting/choice`); for few points they are chosen by likelihood (`fitting/whole`).
3. At a query q, take the regions that contain it (`model/lookup`), weight each by a Wendland function of the distance to its
   centre, which vanishes smoothly at its border, and average: f̂ = Σ w_j f_j / Σ w_j (`model/stitch`).
4. Where no region has weight, the same kind of model on thinner samples takes over, and finally a polynomial
   (`fitting/background`).

So the prediction is as smooth as the weight and the kernel, depends on nearby data alone, costs a time linear in n to fit and
nearly independent of n to evaluate, and its gradient and Hessian are exact.

    from stitchwork import StitchedRegressor, load
    model = StitchedRegressor().fit(X, y)
    model.predict(Q), model.gradient(Q), model.hessian(Q)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._attributes import LeaveOneOut
    from ._loading import load
    from ._regressor import StitchedRegressor
    from .local.factors import set_cache_bytes
    from .local.own import FittedLocalModel, LocalModel
    from .model.stitch import Contribution

__version__ = "0.3.0.dev0"
__all__ = ["Contribution", "FittedLocalModel", "LeaveOneOut", "LocalModel", "StitchedRegressor", "load", "set_cache_bytes"]

_HOMES = {
    "Contribution": ".model.stitch",
    "FittedLocalModel": ".local.own",
    "LocalModel": ".local.own",
    "LeaveOneOut": "._attributes",
    "StitchedRegressor": "._regressor",
    "load": "._loading",
    "set_cache_bytes": ".local.factors",
}


def __getattr__(name: str) -> Any:
    """Public names, imported when first used: the command line answers before scikit-learn is loaded."""
    from importlib import import_module

    if name in _HOMES:
        return getattr(import_module(_HOMES[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
