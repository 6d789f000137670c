# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Panels: traffic, vehicles and clicks at the side, and a small read-out in each browser.

The latter has a compass, a scale bar and the state of the followed vehicle.
"""

from __future__ import annotations

import html
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import viser

from rfly_collision.shapes.vehicle_meshes import MODELS, colour_of
from rfly_common.arrays import Floats
from rfly_common.config.vehicle_models import model_of
from rfly_common.frames import quat_to_euler
from rfly_terrain.height_map.height_map import HeightMap
from rfly_viewer.scene.picking import ground_distance
from rfly_viewer.scene.vehicle_table import VehicleTable, WorldPoses
from rfly_viewer.scene.viewpoint import ALL_VEHICLES, from_browser

MAX_LISTED = 40
"""Vehicles in the list."""
MAX_CHOICES = 500
"""Vehicles that can be chosen for following."""
MAX_ACTIONS = 64
"""Actions that wait to be run; of more the latest."""
MAX_ENLARGED = 30
"""Largest magnification of vehicles."""
LOG_LINES = 8
_NOBODY = "nobody"
_ALL = "all"
_STYLE = "font-size:12px;line-height:1.4;margin:0 0.8em;overflow-wrap:anywhere"

EVERY_S = 0.2
"""Time between two readouts, s."""
SPEED_OVER_S = 1.0
"""Time over which a speed is measured, s."""
LONGEST_BAR_PX = 130.0
"""Longest scale bar, pixels."""
_POINTS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")
_PANEL = {"x": 15, "y": -15, "width": 190}
_NEEDLE = '<circle r="20" fill="none" stroke="#999"/><path d="M0-18 6 5 0 1-6 5Z" fill="#c33"/>'


class Panel:
    """Controls of the window. viser calls back in its threads; actions wait for `run_actions`."""

    def __init__(
        self,
        server: viser.ViserServer,
        run_command: Callable[[str], None],
        show_all: Callable[[], None],
        remove_all: Callable[[], None],
        follow: int | None = None,
        enlarge: int = 1,
    ) -> None:
        """Make the controls.

        Their actions are called by `run_actions`, in the viewer's own thread. `follow` is the id of
        a vehicle that is followed once it appears, until the user chooses another; ALL_VEHICLES
        stands for all. `enlarge` is the first magnification of vehicles.
        """
        gui = server.gui
        self._follow_first = _choice(follow)
        self._actions: deque[Callable[[], None]] = deque(maxlen=MAX_ACTIONS)

        self._status = gui.add_html("")
        self._follow = gui.add_dropdown("Follow", [_NOBODY, _ALL])
        self._enlarge = gui.add_slider(
            "Enlarge", 1, MAX_ENLARGED, 1, enlarge, hint="magnification of all vehicles"
        )
        self._boxes = {
            "trails": gui.add_checkbox(
                "Trails", True, hint="the last minute of each vehicle's path"
            ),
            "ground_trails": gui.add_checkbox(
                "Trails on the ground", False, hint="a line below each flown path as well"
            ),
            "ids": gui.add_checkbox(
                "Ids", True, hint="the number over each vehicle, for up to 40 of them"
            ),
            "texts": gui.add_checkbox("Texts", True, hint="key H: all texts over vehicles"),
            "sight": gui.add_checkbox(
                "In sight", False, hint="what an antenna at the last double click has in sight"
            ),
            "data": gui.add_checkbox(
                "Vehicle data", True, hint="key D: speed, height and attitude of the followed one"
            ),
        }
        self._place = gui.add_checkbox(
            "Click puts a target", False, hint="key T: the next click puts a target on the ground"
        )

        all_button = gui.add_button("Show all")
        with gui.add_folder("Vehicles"):
            self._list = gui.add_html("")
            remove_button = gui.add_button("Remove all", color="gray")
        with gui.add_folder("Double click"):
            self._click = gui.add_html(_block(["Double click on the ground or on a vehicle."]))
        with gui.add_folder("Console", expand_by_default=False):
            self._log = gui.add_html("")
            with gui.add_form(None) as form:
                line = gui.add_text(
                    "Command", "", hint="as by UDP: RflyChangeMapbyName JacksboroFault"
                )

        gui.main_panel.minimize()

        key = gui.add_command("Put a target with the next click", hotkey="T")

        @key.on_trigger
        def _(event: object) -> None:
            self._place.value = True  # type: ignore[misc]

        all_button.on_click(lambda _: self._actions.append(show_all))
        remove_button.on_click(lambda _: self._actions.append(remove_all))

        @form.on_submit
        def _(event: object) -> None:
            text = line.value
            line.value = ""  # type: ignore[misc]
            self._actions.append(lambda: run_command(text))

    @property
    def followed(self) -> int | None:
        """The id that the cameras follow, or ALL_VEHICLES; None if none is chosen."""
        chosen = str(self._follow.value)  # a browser may say anything
        if chosen == _ALL:
            return ALL_VEHICLES
        return int(chosen) if chosen in self._follow.options and chosen != _NOBODY else None

    def follow(self, vehicle_id: int | None) -> None:
        """Follow a vehicle, once it appears, or ALL_VEHICLES; None: the next one in the list."""
        self._follow_first = None
        if vehicle_id is not None:
            self._follow_first = _choice(vehicle_id)
            self._follow_if_there()
            return
        ids = [option for option in self._follow.options if option not in (_NOBODY, _ALL)]
        value = str(self._follow.value)
        following = ids.index(value) + 1 if value in ids else 0
        if ids:
            self._follow.value = ids[following % len(ids)]  # type: ignore[misc]

    def _follow_if_there(self) -> None:
        if self._follow_first in self._follow.options:
            self._follow.value = self._follow_first  # type: ignore[misc]
            self._follow_first = None

    def follow_nobody(self) -> None:
        """Leave the cameras to the mouse."""
        self._follow_first = None
        self._follow.value = _NOBODY  # type: ignore[misc]

    def show(self, box: str, number: int | None) -> None:
        """Check a box for a number above 0, uncheck it for others, or (None) switch it."""
        checkbox = self._boxes[box]
        checkbox.value = (not checkbox.value) if number is None else number > 0  # type: ignore[misc]

    @property
    def enlarge(self) -> float:
        """Magnification of vehicles."""
        return float(min(max(self._enlarge.value, 1), MAX_ENLARGED))

    def shows(self, box: str) -> bool:
        """Return whether a box is checked.

        `ids` and `texts` are drawn over the vehicles, `trails` behind them, and `ground_trails`
        below those; `data` are those of the followed vehicle.
        """
        return bool(self._boxes[box].value)

    def take_place_click(self) -> bool:
        """Return whether this click puts a target down; the next one does not."""
        wanted = bool(self._place.value)
        if wanted:
            self._place.value = False  # type: ignore[misc]
        return wanted

    def run_actions(self) -> None:
        """Run the actions of buttons and texts since the last call."""
        for _ in range(len(self._actions)):
            self._actions.popleft()()

    def show_status(self, lines: Sequence[str]) -> None:
        """Show the map, where the window listens, what comes in and what goes out."""
        first, *others = map(html.escape, lines)
        show_html(self._status, _block([f"<b>{first}</b>", *others], escape=False))

    def show_vehicles(self, table: VehicleTable, poses: WorldPoses) -> None:
        """Show the list, and the choices of vehicles to follow."""
        rows = []
        listed = range(min(len(poses), MAX_LISTED))
        for i, colour in zip(listed, colour_of(poses.id).tolist(), strict=False):
            x, y, z = poses.position_ned[i].tolist()
            vehicle_type = int(table["vehicle_type"][i])
            model = model_of(vehicle_type)
            known = MODELS[poses.kind[i]].name if model is None else model.name
            name = html.escape(table.descriptions.name(vehicle_type) or known)
            rows.append(
                f'<tr><td><span style="color:rgb{tuple(colour)}">&#9632;</span> {poses.id[i]}</td>'
                f"<td>{name} {vehicle_type}</td>"
                f"<td style='text-align:right'>{x:.1f}&nbsp; {y:.1f}&nbsp; {z:.1f}</td></tr>"
            )

        more = f"and {len(poses) - MAX_LISTED} more" if len(poses) > MAX_LISTED else ""
        head = "none yet"
        if rows:
            head = "<tr><th>id</th><th>shape, type</th><th>north, east, down m</th></tr>"
        text = (
            f'<div style="{_STYLE}"><table style="width:100%;text-align:left">'
            f"{head}{''.join(rows)}</table>{more}</div>"
        )
        show_html(self._list, text)

        choices = (_NOBODY, _ALL, *map(str, poses.id[:MAX_CHOICES].tolist()))
        if tuple(self._follow.options) != choices:
            self._follow.options = choices
        self._follow_if_there()

    def show_log(self, lines: Sequence[str]) -> None:
        """Show the newest lines of the console, the latest last."""
        show_html(self._log, _block(list(lines)[-LOG_LINES:]))

    def show_click(self, lines: Iterable[str]) -> None:
        """Show what a double click found."""
        show_html(self._click, _block(lines))


def _choice(followed: int | None) -> str | None:
    """Return the entry of the list for an id or ALL_VEHICLES; None for None."""
    if followed is None:
        return None
    return _ALL if followed == ALL_VEHICLES else str(followed)


def show_html(handle: viser.GuiHtmlHandle, text: str) -> None:
    """Show a text in place of the one before; it is sent only if it differs."""
    if handle.content != text:
        handle.content = text


def _block(lines: Iterable[str], escape: bool = True) -> str:
    text = "<br>".join(map(html.escape, lines) if escape else lines)
    return f'<div style="{_STYLE}">{text}</div>'


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
