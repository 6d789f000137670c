# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A headless Chromium, driven over its DevTools protocol."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from rfly_common.errors import ConfigError
from rfly_common.files import Closing

PATIENCE_S = 120.0
"""Longest time for an answer, s: without a graphics card a busy machine draws slowly."""
# Without a graphics card: WebGL in software. No first-run pages, no updates, no reports.
_OPTIONS = (
    "--headless=new",
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
    """Return the installed Chromium, under Debian's or another usual name."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Chromium(Closing):
    """One browser with one page. A context manager; `close` ends it and removes its profile."""

    def __init__(self, width: int, height: int, angle: str = "swiftshader") -> None:
        """Start it with a page of this size, pixels. Raise ConfigError if there is none.

        angle: what draws. SwiftShader draws WebGL and the page around it; "swiftshader-webgl", as
        Chromium chooses itself without a graphics card, draws WebGL only. Pages then come earlier,
        and each picture of them costs more.
        """
        program = chromium_program()
        if program is None:
            raise ConfigError(
                "the program chromium is not installed; on Debian or Ubuntu: apt install chromium"
            )
        self._profile = tempfile.TemporaryDirectory(
            prefix="rfly_chromium_", ignore_cleanup_errors=True
        )
        options = [
            *_OPTIONS,
            f"--use-angle={angle}",
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
        self._socket: Any = None
        self._session = ""
        self._number = 0
        try:
            self._connect(width, height)
        except BaseException:
            self.close()
            raise

    def _connect(self, width: int, height: int) -> None:
        from websockets.sync.client import connect

        port, path = self._address()
        # without pings: events that nobody has taken yet would hold up their answers
        self._socket = connect(
            f"ws://127.0.0.1:{port}{path}", max_size=None, compression=None, ping_interval=None
        )
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def _address(self) -> list[str]:
        """Return port and path of its DevTools, which it writes into a file."""
        file = Path(self._profile.name) / "DevToolsActivePort"
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and self._process.poll() is None:
            if file.exists() and file.read_text().count("\n") >= 1:
                return file.read_text().split("\n")[:2]
            time.sleep(0.02)
        raise ConfigError("the program chromium did not start")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to one DevTools command. Raise ConfigError if it is an error."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))

        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if answer.get("id") != self._number:
                self.note(answer.get("method", ""), answer.get("params", {}))
            elif "error" in answer:
                raise ConfigError(f"chromium: {method}: {answer['error']}")
            else:
                result: dict[str, Any] = answer["result"]
                return result

    def note(self, method: str, details: dict[str, Any]) -> None:
        """Take an event that comes between command and answer."""

    def before_load(self, script: str) -> None:
        """Run a script in each page before its own."""
        self.call("Page.addScriptToEvaluateOnNewDocument", source=script)

    def open(self, url: str) -> None:
        """Load a page; return when it was requested."""
        self.call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """Return the value of an expression in the page. Raise ConfigError if it throws."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise ConfigError(f"chromium: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def screenshot(self) -> bytes:
        """Return the picture of the page as a png file."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def close(self) -> None:
        """End the browser."""
        if self._socket is not None:
            self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._profile.cleanup()
