# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A real headless Chromium, driven over its DevTools protocol.

It has pages, scripts and pictures, and lists the hosts that it requested.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from node_harness import PATIENCE, wait_until

# Without a graphics card: SwiftShader draws WebGL in software. No first-run pages, no updates, no
# reports.
_OPTIONS = (
    "--headless=new",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--mute-audio",
    "--force-device-scale-factor=1",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
)


def chromium_program() -> str | None:
    """The installed Chromium, under Debian's or another usual name."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        program = shutil.which(name)
        if program:
            return program
    return None


class Chromium:
    """One browser with one page. A context manager; `close` ends it and removes its profile."""

    def __init__(self, width: int = 800, height: int = 600) -> None:
        program = chromium_program()
        assert program is not None, "the program chromium is not installed"

        self._profile = tempfile.TemporaryDirectory(
            prefix="rfly_chromium_", ignore_cleanup_errors=True
        )

        options = [
            *_OPTIONS,
            f"--window-size={width},{height}",
            f"--user-data-dir={self._profile.name}",
        ]
        if os.name == "posix" and os.geteuid() == 0:
            options.append("--no-sandbox")  # which Chromium does not have for root

        self._process = subprocess.Popen(
            [program, *options, "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

        self.requested: list[str] = []
        """Addresses that the page requested, WebSockets included."""
        self.console: list[str] = []
        self._number = 0

        try:
            self._connect(width, height)
        except BaseException:
            self.close()
            raise

    def _connect(self, width: int, height: int) -> None:
        from websockets.sync.client import connect

        file = Path(self._profile.name) / "DevToolsActivePort"
        wait_until(
            lambda: file.exists() and file.read_text().count("\n") >= 1,
            "Chromium's DevTools port",
        )
        port, path = file.read_text().split("\n")[:2]
        self._socket = connect(f"ws://127.0.0.1:{port}{path}", max_size=None, compression=None)
        self._session = ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One DevTools command and its answer; what happens meanwhile is noted."""
        self._number += 1
        message: dict[str, Any] = {
            "id": self._number,
            "method": method,
            "params": parameters,
        }
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))

        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE))
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        method = event.get("method", "")
        details = event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requested.append(details["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.requested.append(details["url"])
        elif method == "Runtime.consoleAPICalled":
            self.console.append(
                " ".join(str(a.get("value", a.get("description"))) for a in details["args"])
            )
        elif method == "Runtime.exceptionThrown":
            self.console.append(
                str(details["exceptionDetails"].get("exception", {}).get("description"))
            )

    def before_load(self, script: str) -> None:
        """Run a script in each page before its own."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def open(self, url: str) -> None:
        """Load a page; returns when it was asked for."""
        self.call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the picture of the page, (height, width, 3) RGB."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        return cv2.cvtColor(
            cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR),
            cv2.COLOR_BGR2RGB,
        )

    def click(self, x: float, y: float, times: int = 1) -> None:
        """Click the left button at a pixel, once or more often."""
        for count in range(1, times + 1):
            for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
                self.call(
                    "Input.dispatchMouseEvent",
                    type=kind,
                    x=x,
                    y=y,
                    button="left",
                    clickCount=count,
                )

    def press(self, key: str) -> None:
        """Press and release a letter."""
        for kind in ("rawKeyDown", "char", "keyUp"):
            text = {"text": key.lower()} if kind == "char" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key.lower(), code=f"Key{key.upper()}",
                windowsVirtualKeyCode=ord(key.upper()), **text,
            )  # fmt: skip

    def close(self) -> None:
        """End the browser."""
        if hasattr(self, "_socket"):
            self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
