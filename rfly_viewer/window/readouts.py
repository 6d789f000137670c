# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Small read-out in each browser: compass, scale bar, and the state of the followed vehicle."""

from __future__ import annotations

import html
import math
from collections import deque
from typing import Any

import numpy as np
import viser

from rfly_common.arrays import Floats
from rfly_common.frames import quat_to_euler
from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.scene.picking import ground_distance
from rfly_viewer.scene.vehicle_table import WorldPoses
from rfly_viewer.scene.viewpoint import from_browser
from rfly_viewer.window.panel import show_html

EVERY_S = 0.2
"""Time between two readouts, s."""
SPEED_OVER_S = 1.0
"""Time over which a speed is measured, s."""
LONGEST_BAR_PX = 130.0
"""Longest scale bar, pixels."""
_POINTS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
_PANEL = {"x": 15, "y": -15, "width": 190}
_NEEDLE = '<circle r="20" fill="none" stroke="#999"/><path d="M0-18 6 5 0 1-6 5Z" fill="#c33"/>'


class Readouts:
    """One panel for each browser, as each has its own camera."""

    def __init__(self, server: viser.ViserServer) -> None:
        self._server = server
        self._shown: dict[int, Any] = {}
        self._speed = SpeedMeter()
        self._next_s = 0.0

    def update(
        self,
        poses: WorldPoses,
        followed: int | None,
        terrain: HeightMap,
        now_s: float,
        legend: str = "",
    ) -> None:
        """Show the present state, at most every EVERY_S; `followed` None: no vehicle's.

        legend: HTML about what the ground shows.
        """
        if now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S

        lines = self._vehicle_lines(poses, followed, terrain, now_s)
        clients = self._server.get_clients()
        self._shown = {
            number: self._shown.get(number) or _open_panel(client)
            for number, client in clients.items()
        }
        for number, client in clients.items():
            text = view_html(client.camera, terrain) + "<br>".join(map(html.escape, lines))
            text += legend
            text = f'<div style="font-size:12px;line-height:1.4;margin:0 0.8em">{text}</div>'
            show_html(self._shown[number], text)

    def _vehicle_lines(
        self, poses: WorldPoses, followed: int | None, terrain: HeightMap, now_s: float
    ) -> list[str]:
        row = None if followed is None else poses.row(followed)
        if row is None or followed is None:
            return []

        north, east, down = poses.position_ned[row].tolist()
        height = round(-down - terrain.altitude(east, north), 1) + 0.0  # never -0.0
        roll, pitch, yaw = np.degrees(quat_to_euler(poses.quat_ned_frd[row])).tolist()
        speed = self._speed.measure(followed, poses.position_ned[row], now_s)
        speed_text = "–" if speed is None else f"{speed:.1f}"
        return [
            f"vehicle {followed}: {speed_text} m/s",
            f"{height:.1f} m above ground",
            f"roll {roll:.0f}°, pitch {pitch:.0f}°, heading {round(yaw) % 360}°",
        ]


class SpeedMeter:
    """Speed of one vehicle from its drawn positions, as most packets carry no velocity."""

    def __init__(self) -> None:
        self._vehicle_id: int | None = None
        self._samples: deque[tuple[float, Floats]] = deque()

    def measure(self, vehicle_id: int, position_ned: Floats, now_s: float) -> float | None:
        """Return the speed over the last SPEED_OVER_S, m/s.

        None before the second position of a vehicle.
        """
        if vehicle_id != self._vehicle_id:
            self._vehicle_id = vehicle_id
            self._samples.clear()
        self._samples.append((now_s, position_ned.copy()))
        while len(self._samples) > 2 and self._samples[1][0] <= now_s - SPEED_OVER_S:
            self._samples.popleft()

        since_s, before = self._samples[0]
        if now_s <= since_s:
            return None
        return float(np.linalg.norm(position_ned - before)) / (now_s - since_s)


def view_html(camera: Any, terrain: HeightMap) -> str:
    """Return compass and scale bar of a browser's camera.

    The bar is true where the picture's middle meets the ground.
    """
    forward, up = from_browser(camera.position, camera.wxyz).axes_enu()
    distance = ground_distance(terrain, camera.position, forward)
    if distance is None:
        distance = float(np.linalg.norm(camera.look_at - camera.position))

    heading = heading_deg(forward, up)
    needle = (
        '<svg width="42" height="42" viewBox="-21 -21 42 42">'
        f'<g transform="rotate({-heading})">{_NEEDLE}</g></svg>'
    )
    point = _POINTS[round(heading / 45) % 8]
    looks = f"looks {point}, {heading}°<br>{distance_text(distance)} away"

    length, width = scale_bar(2 * distance * math.tan(camera.fov / 2) / camera.image_height)
    bar = f'<div style="width:{width:.0f}px;border:1px solid;border-top:0;height:5px"></div>'
    return (
        f'<div style="display:flex;gap:8px">{needle}<div>{looks}</div></div>'
        f"{bar}{distance_text(length)}<br>"
    )


def heading_deg(forward: Floats, up: Floats) -> int:
    """Return the direction at the top of the picture, degrees from north, clockwise.

    It is also right for a picture that looks straight down.
    """
    towards = forward - math.copysign(1.0, forward[2]) * up
    return round(math.degrees(math.atan2(towards[0], towards[1]))) % 360


def scale_bar(metres_per_pixel: float) -> tuple[float, float]:
    """Return (m, pixels) of the longest bar within LONGEST_BAR_PX.

    Its length is 1, 2 or 5 times a power of ten metres.
    """
    longest = max(metres_per_pixel * LONGEST_BAR_PX, 1e-3)
    power = 10.0 ** math.floor(math.log10(longest))
    length = max(factor * power for factor in (1, 2, 5) if factor * power <= longest)
    if metres_per_pixel <= 0:
        return length, LONGEST_BAR_PX
    return length, min(length / metres_per_pixel, LONGEST_BAR_PX)


def distance_text(metres: float) -> str:
    """Return a distance in m, or in km for 1,000 m and more, with three significant figures."""
    return f"{metres / 1000:.3g} km" if metres >= 1000 else f"{metres:.3g} m"


def _open_panel(client: viser.ClientHandle) -> viser.GuiHtmlHandle:
    panel = client.gui.add_panel()
    with panel.add_tab("View"):
        shown = client.gui.add_html("")
    panel.float(**_PANEL)
    return shown
