# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Film of a recording: a headless Chromium draws the window's page, one frame at a time.

Time goes on by one frame when the browser has drawn the one before, so a slow machine makes the
same film.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from PIL import Image

from rfly_common.errors import ConfigError
from rfly_common.files import open_whole
from rfly_viewer.window.chromium import Chromium
from rfly_viewer.window.server import Settings, Viewer
from rfly_viewer.wire.listener import Playback

SIZE = (640, 360)
"""Width and height of a film, pixels."""
FRAMES_PER_S = 10
MAX_FRAMES = 1000
"""Frames of the longest film, which are all in memory."""
_QUALITY = 40
"""Quality of webp, 0 to 100."""

_ONLY_THE_SCENE = """
document.addEventListener('DOMContentLoaded', () => {
  const style = document.createElement('style');
  style.textContent = 'body * {visibility: hidden} canvas {visibility: visible !important}';
  document.head.appendChild(style);
});
"""
_DRAWN = """
new Promise((done) => {
  const look = () => document.body.textContent.includes('%s')
    ? requestAnimationFrame(() => done(true))
    : requestAnimationFrame(look);
  look();
})
"""
"""Script that waits until the page has the text, and has then been drawn."""


def frames_of(seconds: float, speed: float) -> int:
    """Return the number of frames of a recording of this length. Raise ConfigError for too many."""
    frames = int(seconds / speed * FRAMES_PER_S) + 1
    if frames > MAX_FRAMES:
        raise ConfigError(
            f"--film: {frames} frames; expected at most {MAX_FRAMES}: make it faster by --speed"
        )
    return frames


def make_film(
    settings: Settings,
    datagrams: Iterable[tuple[float, bytes]],
    frames: int,
    speed: float,
    film: Path,
    progress: Callable[[float], None],
) -> None:
    """Write the first frames of a recording as an animation. Raise ConfigError without Chromium."""
    pictures = []
    for number, picture in enumerate(_pictures(settings, datagrams, frames, speed), 1):
        pictures.append(Image.open(io.BytesIO(picture)).convert("RGB"))
        progress(number / frames)

    with open_whole(film) as file:
        pictures[0].save(
            file,
            format=film.suffix[1:].lower(),
            save_all=True,
            append_images=pictures[1:],
            duration=1000 // FRAMES_PER_S,
            loop=0,
            quality=_QUALITY,
        )


def _pictures(
    settings: Settings, datagrams: Iterable[tuple[float, bytes]], frames: int, speed: float
) -> Iterator[bytes]:
    """Yield the frames as png files."""
    seconds = 0.0
    playback = Playback("a recording", datagrams, lambda: seconds, speed)
    viewer = Viewer(settings, playback)
    try:
        with Chromium(*SIZE) as browser:
            browser.before_load(_ONLY_THE_SCENE)
            browser.open(viewer.address)
            while not viewer.is_settled:
                viewer.draw(time.monotonic())
                time.sleep(0.03)

            begin = time.monotonic()
            for number in range(frames):
                seconds = number / FRAMES_PER_S
                viewer.draw(begin + speed * seconds)
                mark = f"frame {number} of {frames}"
                viewer.server.gui.set_panel_label(mark)
                viewer.server.flush()
                browser.evaluate(_DRAWN % mark)
                yield browser.screenshot()
    finally:
        viewer.close()
