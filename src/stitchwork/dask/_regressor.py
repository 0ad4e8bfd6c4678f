"""`DaskStitchedRegressor`: the estimator for data on a cluster."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, get_client

from .._function import project_out
from .._regressor import StitchedRegressor, check_kept, estimator_of, kept_parameters
from .._validation import check_parameters, check_work, make_chart, warn_of_features
from .._validation.rows import check_either, check_errors
from .._validation.slopes import check_given, check_model
from ..fitting.errors import fit_further
from ..fitting.recipe import fit_parts
from ..local.points import Points
from ..model.errors import KnownErrors
from ..model.origin import Origin
from ..model.stitched import StitchedModel
from ..storage.file import read_model, reading, write_model
from ..storage.folder import (
    COARSE,
    MANIFEST,
    Manifest,
    open_folder,
    part_name,
    read_part,
    replacing_model,
    write_manifest,
    write_part,
)
from ._cluster import Cluster
from ._grow import grow_parts
from ._inputs import as_collection, column_names, is_frame, make_blocks, n_columns, target_names
from ._model import PartedModel, count_part
from ._source import Collections, know_rows


class DaskStitchedRegressor(StitchedRegressor):
    """`StitchedRegressor` for dask arrays and data frames, also beyond the memory of one machine.

    It answers all that `StitchedRegressor` does: lazily for dask collections, at once for arrays.

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
    n_boxes_ : int
        Number of boxes. All attributes of `StitchedRegressor` are there, too; those of every region are gathered at first use.

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

    def __init__(self, *, box_size: int = 200_000, client: Client | None = None, **parameters: Any):
        super().__init__(**parameters)
        self.box_size = box_size
        self.client = client

    @classmethod
    def _get_param_names(cls) -> list[str]:
        return sorted(["box_size", "client", *StitchedRegressor._get_param_names()])

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        noise_std: Any = None,
        gradient: Any = None,
        gradient_std: Any = None,
    ) -> Self:
        """Fit dask collections whose partitions belong together.

        Parameters
        ----------
        X : dask array (n, d) or data frame
        y : dask array (n,) or (n, t), series or data frame
        sample_weight : dask array (n,) or series, optional
        groups : dask array (n,) or series, optional
            Points with the same entry are left out together: see `StitchedRegressor.fit`.
        noise_std : number, dask array (n,) or (n, t), series or data frame, optional
            The standard deviation of the error of each observation: see `StitchedRegressor.fit`. The median error, and whether
            there is further noise, are found from some 30,000 rows.
        gradient : dask array (n, d) or (n, t, d) or data frame, optional
            Measured slopes, NaN where one was not measured: see `StitchedRegressor.fit`.
        gradient_std : number, array (d,), dask array (n, d) or data frame, optional

        Examples
        --------
        `client`, `X`, `y` and `model` here and below are those of the class's example.

        >>> model.fit(X, y, sample_weight=da.ones(4000, chunks=1000)).n_features_in_
        2
        """
        check_either(noise_std, sample_weight)
        check_given(gradient, gradient_std, noise_std)
        if self.robust:
            raise ValueError("`robust` needs the whole model in one process. Fit a `StitchedRegressor`.")
        cluster = Cluster(self._client(), bool(self.verbose))
        parameters = kept_parameters(self.get_params(deep=False))
        if isinstance(self.box_size, bool) or not isinstance(self.box_size, int) or self.box_size < 2:
            raise ValueError(f"`box_size` must be an integer of at least 2, got {self.box_size!r}.")
        if not isinstance(parameters["local_model"], str):
            raise ValueError("`local_model` must be a built-in one on a cluster. Fit models of your own with `StitchedRegressor`.")
        errors = {"sample_weight": sample_weight, "noise_std": noise_std}
        blocks = make_blocks(X, y, **errors, groups=groups, gradient=gradient, gradient_std=gradient_std)
        chart = make_chart(parameters["periodic"], parameters["geographic"], blocks.names, blocks.d)
        check_parameters(parameters, blocks.d if chart is None else chart.dimension)
        check_work(self.n_jobs, self.random_state)
        if blocks.sloped:
            check_model(parameters, blocks.d)
        warn_of_features(blocks.d)
        origin = Origin(parameters, blocks.names, target_names(y))
        reading = know_rows(cluster, blocks)._replace(chart=chart)

        def fit_blocks(errors: KnownErrors | None) -> PartedModel:
            source = Collections(blocks, self.box_size, cluster, reading._replace(errors=errors))
            return fit_source(cluster, source, origin)

        self.model_ = (
            fit_blocks(None) if reading.errors is None else fit_further(reading.errors, fit_blocks, PartedModel.ask_further)
        )
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        noise_std: Any = None,
        gradient: Any = None,
        gradient_std: Any = None,
    ) -> Self:
        """Add points, dask collections or arrays that fit into the memory of this process: see `StitchedRegressor.partial_fit`.

        Boxes whose regions they concern are refitted as a whole with the same hyperparameters. Other boxes stay as they were, also
        in a folder that the model is saved to again. The coarse model behind all boxes stays, and `stale_` is not updated.

        Examples
        --------
        >>> more = da.random.default_rng(1).uniform(0, 1, (50, 2), chunks=(50, 2))
        >>> grown = DaskStitchedRegressor(box_size=2000, kernel="gaussian", metric="euclidean").fit(X, y)
        >>> grown.partial_fit(more, da.sin(more[:, 0]) * da.cos(more[:, 1])).n_samples_seen_
        4050
        """
        given = X, y, sample_weight, groups, noise_std, gradient, gradient_std
        if "model_" not in vars(self):
            return self.fit(*given)
        super().partial_fit(*dask.compute(*given))
        return self

    def _check_more(self, model: PartedModel, *given: Any) -> Points:
        return super()._check_more(model.coarse, *given)  # which knows what is common to all rows

    def _grow(self, model: PartedModel, rows: Points) -> PartedModel:
        return grow_parts(Cluster(self._client(), bool(self.verbose)), model, rows)

    def forget(self, X: Any) -> Self:
        """Not available on a cluster: a box that loses points may need those of its neighbours.

        Examples
        --------
        >>> X_, y_ = X[:1000], y[:1000]
        >>> small = DaskStitchedRegressor(kernel="gaussian", metric="euclidean").fit(X_, y_)
        >>> small.to_local().forget(X_[:10].compute()).model_.n_points
        990
        """
        raise ValueError("`forget` needs the whole model in one process. Use `to_local()`, or fit the points that are left.")

    @property
    def n_boxes_(self) -> int:
        """Number of boxes.

        Examples
        --------
        >>> model.n_boxes_
        2
        """
        return len(self._current().parts)

    def to_local(self) -> StitchedRegressor:
        """The whole model as a `StitchedRegressor`, in the memory of this process.

        Examples
        --------
        >>> model.to_local().n_regions_ == model.n_regions_
        True
        """
        return estimator_of(self._current().gather())

    def save(self, path: str | os.PathLike[str], *, factors: bool = False, compact: bool = False) -> None:
        """Write the model to the folder ``path``, which all workers must see: a manifest, a coarse model, one file per part.

        `stitchwork.load` reads it as a `StitchedRegressor`, `stitchwork.dask.load` lazily.

        Examples
        --------
        >>> model.save("waves")
        """
        for name, wanted in (("factors", factors), ("compact", compact)):
            if wanted:
                raise ValueError(f"Models in parts are not saved with `{name}`. Use `to_local().save(path, {name}=True)`.")
        model: PartedModel = self._current()
        with replacing_model(Path(path).absolute()) as folder:
            write_model(model.coarse, folder / COARSE)
            files = model.files or [None] * len(model.parts)
            write, copy = dask.delayed(write_part), dask.delayed(shutil.copyfile)
            targets = [folder / part_name(number) for number in range(len(files))]
            tasks = [
                write(part, target) if file is None or not file.is_file() else copy(file, target)
                for part, file, target in zip(model.parts, files, targets, strict=True)
            ]
            dask.compute(*tasks)
            write_manifest(model.manifest, folder)

    def _client(self) -> Client:
        if self.client is not None:
            return self.client
        try:
            return get_client()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client. Start a cluster first: `from dask.distributed import Client; client = Client()`."
            ) from error

    def _ask(self, X: Any) -> tuple[Any, Any]:
        """The model, and queries for it: a collection as it is, with the columns checked, anything else as a clean array."""
        if not (is_frame(X) or isinstance(X, da.Array)):
            return super()._ask(X)
        model = self._current()
        queries = as_collection(X)
        if n_columns(queries) != model.n_features:
            raise ValueError(f"`X` has {n_columns(queries)} features, but the model was fitted with {model.n_features}.")
        names, columns = model.origin.feature_names, column_names(queries)
        if names is not None and columns is not None and columns != list(names):
            raise ValueError(f"`X` has the columns {columns}, but the model has {list(names)}. Select and order them alike.")
        return model, queries

    def _variances_at(self, Q: Any, noise_std: Any, t: int) -> Any:
        """Variances of errors, (q, t), of queries that are a collection; one number is that of all."""
        if noise_std is None or not (is_frame(Q) or isinstance(Q, da.Array)):
            return super()._variances_at(Q, noise_std, t)
        if np.ndim(noise_std) == 0:
            return check_errors(noise_std, None, 1, t)
        s = as_collection(noise_std, None if is_frame(Q) else Q.chunks[0])
        s = s.to_dask_array() if is_frame(s) else s
        new = 1 if s.ndim == 1 else None
        return s.map_blocks(
            lambda block: check_errors(block, None, len(block), t), dtype=np.float64, chunks=(s.chunks[0], (t,)), new_axis=new
        )

    def _project(self, gradient: Any, normals: Any) -> Any:
        """(I - n nᵀ) ∇f, block by block."""
        if not isinstance(gradient, da.Array):
            return project_out(gradient, normals)
        normals = as_collection(normals, gradient.chunks[0])
        if gradient.ndim == 2:
            return da.map_blocks(project_out, gradient, normals, dtype=np.float64)
        return da.blockwise(project_out, "qtd", gradient, "qtd", normals, "qd", dtype=np.float64)


def load(path: str | os.PathLike[str]) -> DaskStitchedRegressor:
    """Open a folder that `DaskStitchedRegressor.save` wrote; parts are read when a task needs them.

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
    manifest, coarse = open_folder(folder)
    with reading(folder / MANIFEST):
        check_kept(coarse.origin.parameters, coarse.dimension)
    estimator = DaskStitchedRegressor(box_size=manifest.box_size, **coarse.origin.parameters)
    files: list[Path | None] = [folder / part_name(number) for number in range(len(manifest.boxes))]
    parts = [dask.delayed(read_part)(file, coarse.dimension, coarse.n_outputs) for file in files]
    estimator.model_ = PartedModel(replace(manifest), coarse, dask.delayed(read_model)(folder / COARSE), parts, files)
    return estimator


def keep_errors(coarse: StitchedModel, errors: KnownErrors) -> StitchedModel:
    """The coarse model with what is known of errors."""
    return replace(coarse, errors=errors)


def fit_source(cluster: Cluster, source: Collections, origin: Origin) -> PartedModel:
    """The model in parts of what a source has."""
    fitted = fit_parts(cluster, source, origin)
    counts = cluster.gather(cluster.map(count_part, fitted.parts, name="facts"), "fit")
    handle = fitted.coarse
    if source.reading.errors is not None:
        handle = cluster.submit(keep_errors, handle, source.reading.errors, name="coarse")
    coarse = handle.result()
    manifest = Manifest(
        boxes=fitted.boxes,
        supports=fitted.supports,
        n_points=sum(count[0] for count in counts),
        n_regions=sum(count[1] for count in counts),
        smoothness=float(min(coarse.smoothness, *(count[2] for count in counts))),
        box_size=source.box_size,
        loo_error=None,
    )
    return PartedModel(manifest, coarse, handle, fitted.parts)
