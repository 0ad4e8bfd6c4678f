"""Firefox without a window, by its own remote protocol, Marionette: JSON with its length before it, over a socket."""

import base64
import json
import shutil
import socket
import subprocess
import time
from pathlib import Path


class Firefox:
    """A running Firefox; use it in a ``with`` statement."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 900):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        profile = folder / "profile"
        profile.mkdir()
        offline = {"network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9}
        settings = {
            "marionette.port": port,
            "app.update.enabled": False,
            "datareporting.policy.dataSubmissionEnabled": False,
            **offline,
        }
        (profile / "user.js").write_text("".join(f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in settings.items()))
        name = shutil.which("firefox-esr") or shutil.which("firefox")
        command = [
            name,
            "--headless",
            "--marionette",
            "--no-remote",
            "--profile",
            str(profile),
            f"--width={width}",
            f"--height={height}",
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.socket, self.count = self._connect(port), 0
        self._receive()  # its greeting
        self.ask("WebDriver:NewSession", pageLoadStrategy="normal")
        self.ask("WebDriver:SetWindowRect", width=width, height=height)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.socket.close()
        self.process.terminate()
        self.process.wait(timeout=30)

    def _connect(self, port):
        for _ in range(600):
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=180)
            except OSError:
                if self.process.poll() is not None:
                    raise RuntimeError(f"Firefox ended with {self.process.returncode}") from None
                time.sleep(0.1)
        raise TimeoutError("Firefox does not answer")

    def _receive(self):
        length = b""
        while not length.endswith(b":"):
            length += self.socket.recv(1)
        data = b""
        while len(data) < int(length[:-1]):
            data += self.socket.recv(1 << 16)
        return json.loads(data)

    def ask(self, name, **arguments):
        """A command of WebDriver."""
        self.count += 1
        text = json.dumps([0, self.count, name, arguments]).encode()
        self.socket.sendall(str(len(text)).encode() + b":" + text)
        _, _, error, result = self._receive()
        if error:
            raise RuntimeError(error["message"])
        return result

    def run(self, expression):
        """What an expression comes to in the page itself, promises included; scripts of WebDriver see none of its constants."""
        self.ask("WebDriver:SetTimeouts", script=120_000)
        script = "return window.eval(`Promise.resolve((${arguments[0]})).then(JSON.stringify)`)"
        text = self.ask("WebDriver:ExecuteScript", script=script, args=[expression], newSandbox=False, sandbox=None)["value"]
        return None if text is None else json.loads(text)

    def open(self, address):
        """Go to an address."""
        self.ask("WebDriver:Navigate", url=address)

    def screenshot(self, path):
        """The whole page as PNG."""
        Path(path).write_bytes(base64.b64decode(self.ask("WebDriver:TakeScreenshot", full=True)["value"]))
