"""The page with a live model behind it, on this machine alone."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from .._extras import need
from .._parallel import ALONE, Threads
from ..model.stitched import StitchedModel
from ..views.slices import layer_values
from ._page import page
from ._payload import contribution_rows, payload, view_levels

_MOST_POINTS = 100_000  # of one question


def explore(
    model: Any, port: int = 8642, title: str = "A stitched model", announce: Callable[[str], None] = lambda text: None
) -> None:
    """Serve the page of a fitted model on 127.0.0.1 until interrupted; every user of this machine can open it, nobody else.

    Parameters
    ----------
    model : StitchedRegressor
    port : int
    title : of the page
    announce : called with the address once the page is served

    Examples
    --------
    >>> from stitchwork import load
    >>> from stitchwork.report import explore
    >>> explore(load("m.stitch"), port=8642)  # doctest: +SKIP
    """
    uvicorn = need("uvicorn", "`explore`", "explore")
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as error:
        raise OSError(f"Port {port} of this machine cannot be had ({error.strerror}). Name another one.") from error

    class Announcing(uvicorn.Server):  # type: ignore[name-defined]
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                announce(f"http://127.0.0.1:{port}")

    app = application(model.model_, title, Threads(model.n_jobs))
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="warning")
    with suppress(KeyboardInterrupt):  # the way to stop it
        Announcing(config).run()


def application(model: StitchedModel, title: str, threads: Threads = ALONE) -> Any:
    """The page, and what it asks: layers at many points, and everything at one."""
    parts = ("applications", "responses", "routing", "middleware", "middleware.trustedhost")
    applications, responses, routing, middleware, hosts = (need(f"starlette.{part}", "`explore`", "explore") for part in parts)
    model = view_levels(model)
    content = page(payload(model, None, title, live=True, threads=threads))

    async def main_page(request: Any) -> Any:
        return responses.HTMLResponse(content)

    def answering(answer: Callable[[StitchedModel, dict[str, Any]], Any]) -> Any:
        async def endpoint(request: Any) -> Any:
            # Another site could send a form, but not JSON without asking first.
            if request.headers.get("content-type") != "application/json":
                return responses.JSONResponse({"error": "Send JSON."}, status_code=415)
            try:
                return responses.JSONResponse(answer(model, await request.json()))
            except (ValueError, KeyError, TypeError, IndexError) as error:
                return responses.JSONResponse({"error": str(error)}, status_code=400)

        return endpoint

    routes = [
        routing.Route("/", main_page),
        routing.Route("/layer", answering(_layer), methods=["POST"]),
        routing.Route("/point", answering(_point), methods=["POST"]),
    ]
    # Only this machine's own names: another site cannot point its name at this server.
    guard = middleware.Middleware(hosts.TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return applications.Starlette(routes=routes, middleware=[guard])


def _layer(model: StitchedModel, asked: dict[str, Any]) -> list[float]:
    X, layer, output = np.asarray(asked["points"], dtype=np.float64), asked["layer"], int(asked["output"])
    if X.ndim != 2 or X.shape[1] != model.n_features or len(X) > _MOST_POINTS or not np.isfinite(X).all():
        raise ValueError(f"`points` must be up to {_MOST_POINTS} rows of {model.n_features} numbers.")
    return list(layer_values(model, X, layer, output).tolist())


def _point(model: StitchedModel, asked: dict[str, Any]) -> dict[str, Any]:
    x, output = np.asarray(asked["point"], dtype=np.float64), int(asked["output"])
    order = max(0, int(min(model.smoothness, 2)))
    jet = model.jet(x[None], order)
    return {
        "value": float(jet.value[0, output]),
        "gradient": jet.gradient[0, output].tolist() if order >= 1 else None,
        "laplacian": float(np.trace(jet.hessian[0, output])) if order >= 2 else None,
        "coverage": float(model.coverage(x[None])[0]),
        "deviation": None if model.settings is None else float(model.moments(x[None]).deviation()[0, output]),
        "contributions": contribution_rows(model, x, output),
    }
