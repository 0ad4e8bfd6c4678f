"""The server of `explore`, a real one on loopback: it answers what the model answers, and whatever is wrong is refused at once."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="`explore` needs uvicorn: pip install 'stitchwork[explore]'")

from stitchwork import StitchedRegressor
from stitchwork.cli.console import Console
from stitchwork.cli.exploring import explore_model

GRID = {"at": [0.5, 0.5, 0.5], "axes": [2, 0], "low": [0.0, 0.2], "high": [1.0, 0.8], "size": [3, 2], "output": 0}


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).uniform(size=(300, 3))
    return StitchedRegressor(selection=None, region_size=40, kernel="gaussian").fit(X, np.sin(3 * X[:, 0]) + X.sum(axis=1) ** 2)


@pytest.fixture
def served(model, tmp_path):
    """A process that serves the model, and its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    model.save(tmp_path / "m.stitch")
    process = subprocess.Popen(
        [
            sys.executable,
            "-u",
            "-c",
            "from stitchwork.cli import main; main()",
            "explore",
            str(tmp_path / "m.stitch"),
            "--port",
            str(port),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        # A shell's background job ignores SIGINT, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert str(port) in process.stdout.readline()
    yield process, port
    if process.poll() is None:
        process.kill()
    process.wait()
    process.stdout.close()


def test_what_is_done_before_the_page_is_there_is_said(model, tmp_path, monkeypatch, capsys):
    served = []
    monkeypatch.setattr("stitchwork.report.explore", lambda model, port, title, ready: (served.append(title), ready("http://here")))
    model.save(tmp_path / "m.stitch")
    explore_model(tmp_path / "m.stitch", 1234, Console())
    said = capsys.readouterr()
    assert said.out == "Open http://here in a browser. Ctrl+C stops it.\n"
    reading, preparing, ready = said.err.splitlines()
    assert reading.startswith("stitchwork: reading")
    assert "300 points" in preparing
    assert "ready after" in ready
    assert served == ["m.stitch"]


def post(port, path, body, kind="application/json"):
    """Status and content of an answer; ``body`` is bytes, or what becomes JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", content, {"Content-Type": kind})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_layers_on_a_grid_are_the_models(model, served):
    X = np.array([[b, 0.5, a] for a in (0.0, 0.5, 1.0) for b in (0.2, 0.8)])
    gradient = np.linalg.norm(model.gradient(X), axis=1)
    expected = {
        "value": model(X),
        "gradient": gradient,
        "coverage": model.coverage(X),
        "deviation": model.predict(X, return_std=True)[1],
    }
    for layer, values in expected.items():
        status, content = post(served[1], "layer", GRID | {"layer": layer})
        assert status == 200
        np.testing.assert_allclose(np.frombuffer(content, "<f8"), values, rtol=1e-12)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("layer", b"nonsense", 400),
        ("layer", b"[1, 2]", 400),
        ("layer", b"[" * 100_000, 400),
        ("layer", GRID, 400),  # no layer
        ("layer", GRID | {"layer": "unknown"}, 400),
        ("layer", GRID | {"layer": ["value"]}, 400),
        ("layer", GRID | {"layer": "value", "output": -1}, 400),
        ("layer", GRID | {"layer": "value", "output": 1}, 400),
        ("layer", GRID | {"layer": "value", "axes": [0, 0]}, 400),
        ("layer", GRID | {"layer": "value", "axes": [0, 3]}, 400),
        ("layer", GRID | {"layer": "value", "size": [1001, 1000]}, 400),
        ("layer", GRID | {"layer": "value", "size": [10**30, 1]}, 400),
        ("layer", GRID | {"layer": "value", "at": [0.5, 0.5]}, 400),
        ("point", {"point": [0.5, 0.5, float("inf")], "output": 0}, 400),
        ("point", {"point": [0.5, 0.5, float("nan")], "output": 0}, 400),
        ("point", {"point": [0.5, 0.5, 10**400], "output": 0}, 400),
        ("point", b'{"point": [0.5, 0.5, 1e999], "output": 0}', 400),
        ("point", b'{"point": [0.5, 0.5, ' + b"9" * 5000 + b'], "output": 0}', 400),
        ("point", {"point": "abc", "output": 0}, 400),
        ("point", b" " * (2**20 + 1), 413),
        ("elsewhere", GRID, 404),
    ],
)
def test_what_is_wrong_is_refused(answering, path, body, status):
    got, content = post(answering, path, body)
    assert got == status
    if status != 404:
        assert json.loads(content)["error"]


@pytest.fixture(scope="module")
def answering(model):
    """The port of one server for all wrong questions."""
    import threading

    import uvicorn

    from stitchwork.report._server import application

    server = uvicorn.Server(uvicorn.Config(application(model.model_, "m"), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def test_forms_of_other_sites_are_refused(answering):
    assert post(answering, "layer", b"{}", kind="text/plain")[0] == 415


def test_a_half_sent_question_does_not_hold_up_the_end(served):
    process, port = served
    head = b"POST /point HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n"
    with socket.create_connection(("127.0.0.1", port)) as no_body, socket.create_connection(("127.0.0.1", port)) as no_head:
        no_body.sendall(head + b"\r\n{")
        no_head.sendall(head)
        assert post(port, "point", {"point": [0.5, 0.5, 0.5], "output": 0})[0] == 200  # others are answered meanwhile
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
        assert time.monotonic() - started < 5.0  # a second of grace, and a busy machine's slowness


def test_a_question_must_be_sent_in_time(answering, monkeypatch):
    monkeypatch.setattr("stitchwork.report._server._SECONDS", 0.2)
    head = b"POST /point HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    with socket.create_connection(("127.0.0.1", answering), timeout=20) as slow:
        slow.sendall(head)
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


def test_an_answer_that_takes_too_long_is_given_up(model, monkeypatch):
    testing = pytest.importorskip("starlette.testclient", reason="needs httpx: pip install httpx")
    from stitchwork.report import _server

    monkeypatch.setattr(_server, "_PATIENCE", 0.0)
    client = testing.TestClient(_server.application(model.model_, "m"), base_url="http://127.0.0.1")
    assert client.post("/layer", json=GRID | {"layer": "value"}).status_code == 503


def test_ends_too_far_apart_are_refused(served):
    _, port = served
    status, content = post(port, "layer", GRID | {"layer": "value", "low": [-1.7e308, 0.0], "high": [1.7e308, 1.0]})
    assert status == 400
    assert b"too far apart" in content
    for layer in ("value", "gradient", "coverage", "deviation"):
        assert post(port, "layer", GRID | {"layer": layer, "low": [1.6e308, 0.0], "high": [1.7e308, 1.0]})[0] in (200, 400)
    assert post(port, "point", {"point": [1.7e308, -1.7e308, 0.0], "output": 0})[0] in (200, 400)


def test_half_sent_headers_are_closed_in_time(served):
    _, port = served
    waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(50)]
    for connection in waiting:
        connection.sendall(b"POST /point HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
    kept = socket.create_connection(("127.0.0.1", port))  # one that was answered once
    kept.sendall(b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert kept.recv(100).startswith(b"HTTP/1.1 404")
    kept.sendall(b"GET / HTTP/1.1\r\n")
    started = time.monotonic()
    for connection in (*waiting, kept):
        connection.settimeout(15.0)
        while True:
            if time.monotonic() - started < 9.0 and connection is waiting[0]:
                connection.sendall(b"x")  # a byte now and then does not help
                time.sleep(0.5)
            elif not connection.recv(1000):
                break
        connection.close()
    assert time.monotonic() - started < 16.0
    assert post(port, "point", {"point": [0.5, 0.5, 0.5], "output": 0})[0] == 200
