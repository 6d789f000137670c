# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Panel at the side of the window: traffic, vehicles, clicks, and the controls."""

from __future__ import annotations

import html
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import viser

from rfly_collision.shapes.vehicle_meshes import MODELS, colour_of
from rfly_common.config.vehicle_models import model_of
from rfly_viewer.scene.vehicle_table import VehicleTable, WorldPoses
from rfly_viewer.scene.viewpoint import ALL_VEHICLES

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
