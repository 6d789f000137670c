# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A real headless Chromium: pages, scripts, pictures and clicks, and the hosts it requested."""

from __future__ import annotations

from typing import Any

import cv2
import numpy as np

from rfly_viewer.window import chromium

FEW_FRAMES = """(() => {
    const draw = requestAnimationFrame.bind(window);
    window.requestAnimationFrame = (frame) => setTimeout(draw, 100, frame);
    window.cancelAnimationFrame = clearTimeout;
})()"""
"""Script that lets a page draw ten pictures a second: without a graphics card each costs tens of
milliseconds of all cores, even while nothing changes.
"""


class Chromium(chromium.Chromium):
    """One browser with one page. A context manager; `close` ends it and removes its profile."""

    def __init__(self, width: int = 800, height: int = 600, angle: str = "swiftshader") -> None:
        self.requested: list[str] = []
        """Addresses that the page requested, WebSockets included."""
        self.console: list[str] = []
        super().__init__(width, height, angle)
        self.before_load(FEW_FRAMES)

    def note(self, method: str, details: dict[str, Any]) -> None:
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

    def picture(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the picture of the page, (height, width, 3) RGB."""
        data = np.frombuffer(self.screenshot(), np.uint8)
        return cv2.cvtColor(cv2.imdecode(data, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)

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
