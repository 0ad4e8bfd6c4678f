"""`DaskStitchedRegressor`: the estimator for data on a cluster."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, get_client
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from .._boxes import Boxes
from .._function import check_smoothness
from .._io import ModelState, read_model, write_model
from .._local import Jet
from .._radial import weight_named
from .._regressor import StitchedRegressor, restored
from .._shard_io import COARSE, Manifest, read_manifest, read_shard, replacing_folder, shard_name, write_manifest, write_shard
from .._shards import Shard, loo_sums, merged
from .._stitch import coverage, stitched
from .._validation import check_normals, check_parameters
from ._fit import Cluster, fit_on
from ._inputs import as_collection, checked_queries, column_names, is_frame, make_blocks, n_columns, row_blocks

Array = NDArray[np.float64]

# What a shard can be asked, and the order of the derivatives that this takes.
_ASKED = {"coverage": 0, "value": 0, "gradient": 1, "value and gradient": 1, "hessian": 2}
_AT_ONCE = 1 << 14  # queries of a shard that are worked on at once


class DaskStitchedRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """`StitchedRegressor` for dask arrays and data frames, also beyond the memory of one machine.

    Parameters
    ----------
    box_size : int, default=200_000
        About how many points a box of space holds: one task covers and fits one box, in about 2 kB of memory per point.
    client : `dask.distributed.Client`, optional
        The cluster to fit on; the one that is current by default.
    **parameters
        Those of `StitchedRegressor`. ``n_jobs`` is ignored: workers are Dask's. ``local_model`` must be a built-in one.

    Attributes
    ----------
    n_regions_ : int
    n_boxes_ : int
    smoothness_ : float
        t, where the prediction is C^t.
    metric_ : array of shape (d, d)
    loo_error_ : float
        Root mean squared leave-one-out error of the stitched prediction, computed when first asked for.
    n_features_in_ : int
    feature_names_in_ : array of shape (d,), only if X was a data frame

    Examples
    --------
    >>> import dask.array as da
    >>> from dask.distributed import Client
    >>> from stitchwork.dask import DaskStitchedRegressor
    >>> client = Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    >>> X = da.random.default_rng(0).uniform(0, 6, (4000, 2), chunks=(1000, 2))
    >>> y = da.sin(X[:, 0]) * da.cos(X[:, 1])
    >>> model = DaskStitchedRegressor(box_size=2000, kernel="gaussian", metric="euclidean").fit(X, y)
    >>> model.n_boxes_
    2
    """

    _state: ModelState
    _manifest: Manifest

    def __init__(self, *, box_size: int = 200_000, client: Client | None = None, **parameters: Any):
        known = StitchedRegressor().get_params(deep=False)
        for name in parameters:
            if name not in known:
                raise TypeError(f"`{name}` is not a parameter. Known are box_size, client, {', '.join(known)}.")
        self.box_size = box_size
        self.client = client
        for name, value in (known | parameters).items():
            setattr(self, name, value)

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(["box_size", "client", *StitchedRegressor._get_param_names()])

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit dask collections whose partitions belong together.

        Parameters
        ----------
        X : dask array (n, d) or data frame
        y : dask array (n,) or (n, t), series or data frame
        sample_weight : dask array (n,) or series, optional

        Examples
        --------
        `client`, `X`, `y` and `model` here and below are those of the class's example.

        >>> model.fit(X, y, sample_weight=da.ones(4000, chunks=1000)).n_features_in_
        2
        """
        client = self._client()
        parameters = {name: getattr(self, name) for name in StitchedRegressor._get_param_names()}
        if isinstance(self.box_size, bool) or not isinstance(self.box_size, int) or self.box_size < 2:
            raise ValueError(f"`box_size` must be an integer of at least 2, got {self.box_size!r}.")
        if not isinstance(parameters["local_model"], str):
            raise ValueError("`local_model` must be a built-in one on a cluster. Fit models of your own with `StitchedRegressor`.")
        blocks = make_blocks(X, y, sample_weight)
        check_parameters(parameters, blocks.d)
        fitted = fit_on(Cluster(client, bool(self.verbose)), blocks, parameters, self.box_size)
        self._coarse, self._shards = fitted.coarse, fitted.shards
        self._publish(fitted.state, fitted.manifest)
        return self

    def predict(self, X: Any) -> Any:
        """Values at ``X``, as (q,) or (q, t): lazily for dask collections.

        Examples
        --------
        >>> float(abs(model.predict(X) - y).max()) < 1e-4
        True
        """
        return self._evaluated(X, "value")

    def gradient(self, X: Any, normals: Any = None) -> Any:
        """Exact gradients at ``X``, as (q, d) or (q, t, d); with ``normals`` (q, d) of a surface, surface gradients.

        Examples
        --------
        >>> model.gradient(X)
        dask.array<concatenate, shape=(4000, 2), dtype=float64, chunksize=(1000, 2), chunktype=numpy.ndarray>
        """
        gradient = self._evaluated(X, "gradient")
        return gradient if normals is None else _along_surface(gradient, normals)

    def predict_with_gradient(self, X: Any, normals: Any = None) -> tuple[Any, Any]:
        """Values and gradients in one lookup.

        Examples
        --------
        >>> value, gradient = model.predict_with_gradient(X)
        >>> value.shape, gradient.shape
        ((4000,), (4000, 2))
        """
        both = self._evaluated(X, "value and gradient")
        value, gradient = both[..., 0], both[..., 1:]
        return value, gradient if normals is None else _along_surface(gradient, normals)

    def hessian(self, X: Any) -> Any:
        """Exact Hessians at ``X``, as (q, d, d) or (q, t, d, d).

        Examples
        --------
        >>> model.hessian(X).shape
        (4000, 2, 2)
        """
        return self._evaluated(X, "hessian")

    def coverage(self, X: Any) -> Any:
        """How much of the prediction comes from regions that hold data there, (q,): 1 inside the data, 0 far outside.

        Examples
        --------
        NumPy arrays are answered at once.

        >>> model.coverage([[3.0, 3.0], [30.0, 30.0]])
        array([1., 0.])
        """
        return self._evaluated(X, "coverage")

    @property
    def loo_error_(self) -> float:
        """Root mean squared leave-one-out error of the stitched prediction.

        Examples
        --------
        >>> model.loo_error_ < 1e-4
        True
        """
        check_is_fitted(self)
        error = self._manifest.loo_error
        if error is None:
            weight = weight_named(self._state.parameters["weight"], self.n_features_in_)
            sums = dask.compute(*(dask.delayed(loo_sums)(shard, weight, self._manifest.reach) for shard in self._shards))
            error = float(np.sqrt(sum(part for part, _ in sums) / sum(weight for _, weight in sums)))
            self._manifest = replace(self._manifest, loo_error=error)
        return error

    def to_local(self) -> StitchedRegressor:
        """The whole model as a `StitchedRegressor`, in the memory of this process.

        Examples
        --------
        >>> model.to_local().n_regions_ == model.n_regions_
        True
        """
        check_is_fitted(self)
        shards = dask.compute(*(dask.delayed(Shard.own)(shard) for shard in self._shards))
        points, assembly = merged(shards, self._state.assembly, self._manifest.reach, self._manifest.hierarchy)
        return restored(replace(self._state, points=points, assembly=assembly, loo_error=self._manifest.loo_error))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to the folder ``path``, which all workers must see: a manifest, a coarse model, one file per shard.

        `stitchwork.load` reads it as a `StitchedRegressor`, `stitchwork.dask.load` lazily.

        Examples
        --------
        >>> model.save("waves")
        """
        check_is_fitted(self)
        with replacing_folder(Path(path).absolute()) as folder:
            write_model(self._state, folder / COARSE)
            write = dask.delayed(write_shard)
            dask.compute(*(write(shard, folder / shard_name(number)) for number, shard in enumerate(self._shards)))
            write_manifest(self._manifest, folder)

    def _publish(self, state: ModelState, manifest: Manifest) -> None:
        """Set the fitted attributes."""
        self._state, self._manifest = state, manifest
        self.n_features_in_, self.n_regions_, self.n_boxes_ = manifest.boxes.d, manifest.n_regions, len(manifest.boxes)
        self.smoothness_, self.metric_ = manifest.smoothness, state.space.metric
        if state.feature_names is not None:
            self.feature_names_in_ = np.array(state.feature_names, dtype=object)

    def _client(self) -> Client:
        if self.client is not None:
            return self.client
        try:
            return get_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client. Start a cluster first: `from dask.distributed import Client; client = Client()`."
            ) from error

    def _evaluated(self, X: Any, what: str) -> Any:
        """One of `_ASKED` at ``X``."""
        check_is_fitted(self)
        check_smoothness(_ASKED[what], self.smoothness_, self._state.parameters["weight"])
        lazy = is_frame(X) or isinstance(X, da.Array)
        queries = as_collection(X)
        if n_columns(queries) != self.n_features_in_:
            raise ValueError(f"`X` has {n_columns(queries)} features, but the model was fitted with {self.n_features_in_}.")
        names = column_names(queries) and self._state.feature_names
        state, (d, t) = self._state, (self.n_features_in_, self._state.points.y.shape[1])
        boxes, B = self._manifest.boxes, len(self._shards)
        asked = partial(answered, manifest=self._manifest, what=what)
        lengths = [np.nan] * queries.npartitions if is_frame(queries) else queries.chunks[0]
        outputs = () if state.flat or what == "coverage" else (t,)
        shape = *outputs, *((d + 1,) if what == "value and gradient" else (d,) * _ASKED[what])
        parts = []
        for number, (block, length) in enumerate(zip(row_blocks(queries), lengths, strict=True)):
            routed = dask.delayed(routed_queries, nout=B + 1)(number, block, d, names, state.space, boxes)
            answers = [dask.delayed(asked)(routed[box], self._shards[box], self._coarse) for box in range(B)]
            whole = dask.delayed(reassembled)(routed[B], shape, answers)
            parts.append(da.from_delayed(whole, shape=(length, *shape), dtype=np.float64))
        result = da.concatenate(parts, allow_unknown_chunksizes=True)
        return result if lazy else result.compute()


def routed_queries(number: int, X: Any, d: int, names: list[str] | None, space: Any, boxes: Boxes) -> list[Array]:
    """The queries of a block by box, in the space of the regions, and then the box of every row."""
    Q = space.coordinates(checked_queries(number, X, d, names))
    box = boxes.of(Q)
    return [*(np.asfortranarray(Q[box == b]) for b in range(len(boxes))), box]


def answered(Q: Array, shard: Shard, coarse: ModelState, manifest: Manifest, what: str) -> Array:
    """One shard at its own queries."""
    parameters = coarse.parameters
    weight, w0 = weight_named(parameters["weight"], Q.shape[1]), float(parameters["background_weight"])
    levels = [*shard.levels(manifest.reach, manifest.hierarchy), *coarse.assembly.levels[1:]]
    found = []
    for start in range(0, len(Q), _AT_ONCE):
        part = np.asfortranarray(Q[start : start + _AT_ONCE])
        if what == "coverage":
            found.append(coverage(levels[0], part, weight, w0))
            continue
        jet: Jet = coarse.space.pull_back(stitched(levels, part, _ASKED[what], weight, w0))
        both = what == "value and gradient"
        answer = np.concatenate([jet.value[..., None], jet.gradient], axis=-1) if both else jet[_ASKED[what]]
        found.append(answer[:, 0] if coarse.flat else answer)
    return np.concatenate(found) if found else np.empty(0)


def reassembled(box: NDArray[np.intp], shape: tuple[int, ...], answers: list[Array]) -> Array:
    """The answers of all boxes in the order of the queries."""
    whole = np.empty((len(box), *shape))
    for number, answer in enumerate(answers):
        if len(answer):
            whole[box == number] = answer
    return whole


def _along_surface(gradient: Any, normals: Any) -> Any:
    """(I - n nᵀ) ∇f, block by block."""

    def project(G: Array, N: Array) -> Array:
        unit = check_normals(N, (len(G), G.shape[-1]))
        unit = unit if G.ndim == 2 else unit[:, None, :]
        return G - (G * unit).sum(axis=-1, keepdims=True) * unit

    if not isinstance(gradient, da.Array):
        return project(gradient, normals)
    normals = as_collection(normals, gradient.chunks[0])
    if gradient.ndim == 2:
        return da.map_blocks(project, gradient, normals, dtype=np.float64)
    return da.blockwise(project, "qtd", gradient, "qtd", normals, "qd", dtype=np.float64)


def load(path: str | os.PathLike[str]) -> DaskStitchedRegressor:
    """Open a folder that `DaskStitchedRegressor.save` wrote; shards are read when a task needs them.

    Examples
    --------
    `model` and `client` are those of the example of `DaskStitchedRegressor`.

    >>> from stitchwork.dask import load
    >>> model.save("waves")
    >>> load("waves").predict(X).shape
    (4000,)
    >>> client.close()
    """
    folder = Path(path).absolute()
    manifest, state = read_manifest(folder), read_model(folder / COARSE)
    model = DaskStitchedRegressor(**state.parameters)
    model._shards = [dask.delayed(read_shard)(folder / shard_name(number)) for number in range(len(manifest.boxes))]
    model._coarse = dask.delayed(read_model)(folder / COARSE)
    model._publish(state, manifest)
    return model
