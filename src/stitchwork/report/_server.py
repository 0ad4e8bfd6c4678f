"""The page with a live model behind it, on this machine alone."""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

import numpy as np

from .._extras import need
from .._parallel import ALONE, Threads
from .._types import Array
from ..model.stitched import StitchedModel
from ..views.slices import LAYERS, Slice, layer_values
from ._page import page
from ._payload import contribution_rows, payload

Answer = Callable[[StitchedModel, dict[str, Any], Threads], Any]

_MOST_POINTS = 1_000_000  # of one picture
_LARGEST_BODY = 2**20  # bytes of a question, which has some hundred
_SECONDS = 10.0  # to send a question in
_PATIENCE = 60.0  # seconds until an answer is given up
_GRACE = 1  # seconds that open requests have when the server ends, complete or not


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
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=_GRACE, http=_hasty_protocol()
    )
    with suppress(KeyboardInterrupt):  # the way to stop it
        Announcing(config).run()


def _hasty_protocol() -> Any:
    """The server's protocol, that closes connections on which no question has arrived whole, headers and all, in time."""
    base = need("uvicorn.protocols.http.h11_impl", "`explore`", "explore").H11Protocol

    class Hasty(base):  # type: ignore[misc, valid-type]
        deadline: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._expect()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._expect()

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget()
            super().connection_lost(exc)

        def _expect(self) -> None:
            """While no answer is due, the next question must come in time, however slowly its bytes arrive."""
            if self.cycle is not None and not self.cycle.response_complete:
                self._forget()
            elif self.deadline is None:
                self.deadline = self.loop.call_later(_SECONDS, self._give_up)

        def _forget(self) -> None:
            if self.deadline is not None:
                self.deadline.cancel()
            self.deadline = None

        def _give_up(self) -> None:
            self.deadline = None
            if self.cycle is None or self.cycle.response_complete:
                self.transport.close()

    return Hasty


def application(model: StitchedModel, title: str, threads: Threads = ALONE) -> Any:
    """The page, and what it asks: a layer on a grid, and everything at one point."""
    parts = ("applications", "responses", "routing", "middleware", "middleware.trustedhost", "exceptions")
    applications, responses, routing, middleware, hosts, exceptions = (_starlette(part) for part in parts)
    content = page([payload(model, None, title, live=True, threads=threads)], title, live=True).encode(errors="replace")

    async def main_page(request: Any) -> Any:
        return responses.HTMLResponse(content)

    async def refused(request: Any, error: Any) -> Any:
        return responses.JSONResponse({"error": error.detail}, status_code=error.status_code)

    def answering(answer: Answer) -> Any:
        def respond(body: bytes) -> Any:
            found = answer(model, _question(body), threads)
            return responses.Response(found) if isinstance(found, bytes) else responses.JSONResponse(found)

        async def endpoint(request: Any) -> Any:
            return await _answer_in_time(respond, await _receive(request))

        return endpoint

    routes = [
        routing.Route("/", main_page),
        routing.Route("/layer", answering(_layer), methods=["POST"]),
        routing.Route("/point", answering(_point), methods=["POST"]),
    ]
    # Only this machine's own names: another site cannot point its name at this server.
    guard = middleware.Middleware(hosts.TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    handlers = {exceptions.HTTPException: refused}
    return applications.Starlette(routes=routes, middleware=[guard], exception_handlers=handlers)


def _starlette(part: str) -> Any:
    return need(f"starlette.{part}", "`explore`", "explore")


def _refusal(status: int, reason: str) -> Any:
    return _starlette("exceptions").HTTPException(status, reason)


async def _receive(request: Any) -> bytes:
    """The body of a question, if it is JSON, small, and sent in time."""
    # Another site could send a form, but not JSON without asking first.
    if request.headers.get("content-type") != "application/json":
        raise _refusal(415, "Send JSON.")
    body = b""
    with need("anyio", "`explore`", "explore").move_on_after(_SECONDS) as sending:
        async for piece in request.stream():
            body += piece
            if len(body) > _LARGEST_BODY:
                raise _refusal(413, f"A question has up to {_LARGEST_BODY:,} bytes.")
    if sending.cancelled_caught:
        raise _refusal(408, f"A question is sent within {_SECONDS:.0f} seconds.")
    return body


async def _answer_in_time(respond: Callable[[bytes], Any], body: bytes) -> Any:
    """What ``respond`` says, in a thread, so that others are answered meanwhile."""
    anyio = need("anyio", "`explore`", "explore")
    try:
        with anyio.fail_after(_PATIENCE):
            return await anyio.to_thread.run_sync(respond, body, abandon_on_cancel=True)
    except TimeoutError:
        raise _refusal(503, f"The answer takes more than {_PATIENCE:.0f} seconds. Ask for fewer points.") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise _refusal(400, f"{type(error).__name__}: {error}") from error


def _question(body: bytes) -> dict[str, Any]:
    """A JSON object of finite numbers."""
    asked = json.loads(body, parse_constant=_refuse_constant)
    if not isinstance(asked, dict):
        raise TypeError("A question is a JSON object.")
    return asked


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"Numbers must be finite, got {name}.")


def _numbers(asked: dict[str, Any], name: str, shape: tuple[int, ...]) -> Array:
    found = np.asarray(asked[name], dtype=np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f"`{name}` must be finite numbers of shape {shape}, got shape {found.shape}.")
    return found


def _whole(asked: dict[str, Any], name: str, limit: int) -> list[int]:
    """One or several whole numbers from zero to below ``limit``."""
    found = asked[name] if isinstance(asked[name], list) else [asked[name]]
    if not all(type(number) is int and 0 <= number < limit for number in found):
        raise ValueError(f"`{name}` must be whole numbers from 0 to {limit - 1}, got {str(asked[name])[:40]}.")
    return found


def _layer(model: StitchedModel, asked: dict[str, Any], threads: Threads) -> bytes:
    """A layer on a grid along ``axes`` through ``at``, as little-endian numbers, the last axis fastest.

    Along each axis there are ``size`` points from ``low`` to ``high``.
    """
    layer, (output,) = asked["layer"], _whole(asked, "output", model.n_outputs)
    if layer not in LAYERS:
        raise ValueError(f"`layer` must be one of {', '.join(LAYERS)}, got {str(layer)[:40]!r}.")
    axes, size = _whole(asked, "axes", model.n_features), _whole(asked, "size", _MOST_POINTS + 1)
    if not len(axes) == len(size) == len(set(axes)) or len(axes) not in (1, 2) or math.prod(size) > _MOST_POINTS:
        raise ValueError(f"`axes` are one or two features, and `size` their points, up to {_MOST_POINTS:,} in all.")
    low, high = (_numbers(asked, name, (len(axes),)) for name in ("low", "high"))
    if not np.isfinite(high - low).all():
        raise ValueError("`low` and `high` are too far apart.")
    view = Slice(tuple(axes), _numbers(asked, "at", (model.n_features,)), np.stack([low, high]), ())
    X = view.points([np.linspace(*ends) for ends in zip(low, high, size, strict=True)])
    return layer_values(model, X, layer, output, threads).astype("<f8").tobytes()


def _point(model: StitchedModel, asked: dict[str, Any], threads: Threads) -> dict[str, Any]:
    x, (output,) = _numbers(asked, "point", (model.n_features,)), _whole(asked, "output", model.n_outputs)
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
