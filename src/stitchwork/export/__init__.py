"""Fitted models for other tools: `to_torch` gives a PyTorch module, `to_jax` a JAX function, `to_weights` a table of weights.

The first two hold copies of the model's tables and nothing of the model; what they compute, its derivatives included, is what
the model computes. PyTorch and JAX are imported only where they are asked for, and neither is a dependency of this library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from .._regressor import StitchedRegressor

if TYPE_CHECKING:
    import torch

__all__ = ["to_jax", "to_torch", "to_weights"]


def to_torch(
    model: StitchedRegressor, dtype: torch.dtype | None = None, device: torch.device | str | None = None
) -> torch.nn.Module:
    """The fitted ``model`` as a PyTorch module.

    The module maps x of shape (..., d) to (...,), or to (..., t) if the model was fitted with y of shape (n, t). In double
    precision it agrees with the model's ``predict`` and its derivatives with ``gradient`` and ``hessian``. Shapes are fixed and
    nothing branches on data, so that autograd, `torch.func` (``vmap``, ``grad``, ``jacrev``, ``jacfwd``, ``hessian``) and
    `torch.compile` work. The tables are buffers: ``.to`` moves them, ``state_dict`` holds them, no optimiser changes them.

    Parameters
    ----------
    model : `StitchedRegressor`
        Fitted, with a built-in local model.
    dtype : `torch.dtype`, optional
        Double precision by default. In single precision, regions with a small ridge lose most of their digits.
    device : `torch.device` or str, optional

    Notes
    -----
    A query is answered by all levels of the model, and at each by as many regions as can contain one point, K. So it costs
    time and about 8 K h (d + t + 8) bytes for the largest K, h points a region, plus 8 bytes for each region, and several times
    this where derivatives are taken. Nothing is chunked: ask in batches that fit in memory, and ask the model itself where no other
    framework needs the answer. Inside `torch.inference_mode` derivatives are not prepared, which is faster.

    Derivatives exist up to ``model.smoothness_``; those beyond it are not refused, and mean nothing where they do not exist.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from stitchwork import StitchedRegressor
    >>> from stitchwork.export import to_torch
    >>> X = np.random.default_rng(0).uniform(0, 6, (500, 2))
    >>> model = StitchedRegressor(selection=None).fit(X, np.sin(X[:, 0]) * np.cos(X[:, 1]))
    >>> module = to_torch(model)
    >>> x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    >>> np.allclose(torch.func.grad(module)(x), model.gradient([[1.0, 2.0]])[0])
    True
    """
    try:
        from ._torch import StitchedModule
    except ModuleNotFoundError as error:
        raise _absent(error, "torch", "to_torch") from error
    from ._tables import make_tables

    return StitchedModule(make_tables(model)).to(dtype=dtype, device=device)


def to_jax(model: StitchedRegressor) -> Any:
    """The fitted ``model`` as a JAX function.

    The function maps x of shape (..., d) to (...,), or to (..., t) if the model was fitted with y of shape (n, t). It agrees with
    the model's ``predict`` and its derivatives with ``gradient`` and ``hessian``. Shapes are fixed and nothing branches on data, so
    that ``jax.jit``, ``jax.vmap``, ``jax.grad``, ``jax.hessian`` and their combinations work. It is a `jax.tree_util.Partial`, a
    tree of the model's tables: hand it to a jitted function of yours as an argument to keep the tables out of the compiled code.

    Parameters
    ----------
    model : `StitchedRegressor`
        Fitted, with a built-in local model.

    Raises
    ------
    RuntimeError
        If JAX is not set to double precision.

    Notes
    -----
    Memory, time and derivatives beyond ``model.smoothness_``: as for `to_torch`.

    Examples
    --------
    >>> import numpy as np
    >>> import jax
    >>> jax.config.update("jax_enable_x64", True)
    >>> from stitchwork import StitchedRegressor
    >>> from stitchwork.export import to_jax
    >>> X = np.random.default_rng(0).uniform(0, 6, (500, 2))
    >>> model = StitchedRegressor(selection=None).fit(X, np.sin(X[:, 0]) * np.cos(X[:, 1]))
    >>> f = to_jax(model)
    >>> np.allclose(jax.jit(jax.grad(f))(np.array([1.0, 2.0])), model.gradient([[1.0, 2.0]])[0])
    True
    """
    try:
        from ._jax import stitched_function
    except ModuleNotFoundError as error:
        raise _absent(error, "jax", "to_jax") from error
    from ._tables import make_tables

    return stitched_function(make_tables(model))


def _absent(error: ModuleNotFoundError, package: str, name: str) -> ModuleNotFoundError:
    return ModuleNotFoundError(f"`{name}` needs {error.name}: pip install {package}.", name=error.name)


def to_weights(model: StitchedRegressor, X: ArrayLike, derivative: int = 0, output: int | None = None) -> Any:
    """The weights of the data in predictions at ``X`` (q, d), as an `xarray.Dataset` in the layout of regridding tools.

    Along ``n_s`` it has ``S``, the weight of ``col``, a row of the data, in ``row``, a query, both counted from one, as ESMF, xESMF
    and SCRIP write them; the attributes ``n_a`` and ``n_b`` are the numbers of columns and rows. ``to_netcdf`` writes a file. See
    `StitchedRegressor.operator` for ``derivative`` and ``output``.

    Examples
    --------
    >>> import numpy as np
    >>> from stitchwork import StitchedRegressor
    >>> from stitchwork.export import to_weights
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> y = np.sin(3 * X[:, 0]) * X[:, 1]
    >>> model = StitchedRegressor(kernel="matern52").fit(X, y)
    >>> weights = to_weights(model, X[:5])
    >>> applied = np.zeros(5)
    >>> np.add.at(applied, weights["row"].values - 1, weights["S"].values * y[weights["col"].values - 1])
    >>> np.allclose(applied, model.predict(X[:5]))
    True
    """
    from ._weights import weights_dataset

    return weights_dataset(model.operator(X, derivative, output))
