# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scene state: vehicles, map, labels and texts, changed by packets.

Theory of operation. The scene changes in three ways only: states and packets go through `apply`,
console commands through `run_command`, and a new map through `change_map`. What concerns the
objects is applied here. What only a window can do, such as moving the camera, is queued as an event
that the window fetches with `take_events`. A command that cannot be followed becomes a line of the
log, never an error.

This module uses no sockets, windows or clocks: callers pass the time.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from rfly_collision.shapes.vehicle_descriptions import NONE, VehicleDescriptions
from rfly_common.config.vehicle_models import STYLE, looks_of_class
from rfly_common.errors import CommandError, ConfigError, TerrainError
from rfly_common.files import StrPath
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.height_map.terrain import Terrain
from rfly_terrain.tiles.open_terrain import open_terrain
from rfly_ue_bridge.codec.addresses import FEEDBACK_PORT
from rfly_ue_bridge.codec.packets import Packet
from rfly_ue_bridge.codec.to_rflysim3d import ATTACH_ATTITUDE
from rfly_viewer.scene import console
from rfly_viewer.scene import scene_commands as commands
from rfly_viewer.scene.labels import Labels
from rfly_viewer.scene.state_batches import MAX_COORDINATE_M, StateBatch
from rfly_viewer.scene.vehicle_table import VehicleTable

MAX_LOG_LINES = 50
MAX_EVENTS = 1000
"""Events that wait to be taken; a flood of commands loses the oldest."""
FLAT_SIZE_M = 2000.0
TILES_MB = 64.0
"""Heights of a map in tiles that stay in memory, MB."""
WINDOW_SAMPLES = 1024
"""Samples a side of the part of a map in tiles that everything but the picture knows."""

_WEATHER_CLASS = 804
"""Class of RflySim3D's actor of the weather, which is no vehicle."""
ALL_VEHICLES = -1
"""copterID that means every vehicle in RflyChangeVehicleSize and RflyChange3DModel."""


def near_ground(whole: Terrain, place: tuple[float, float]) -> HeightMap | str:
    """Return the ground about a place, x east and y north, m, or why it cannot be read."""
    try:
        return whole.window(*place, WINDOW_SAMPLES)
    except TerrainError as error:
        return str(error)


def flat_ground(name: str = "") -> HeightMap:
    """Return level ground at z = 0, shown where there is no map."""
    half = FLAT_SIZE_M / 2
    return HeightMap(
        np.zeros((2, 2)),
        origin_x=-half,
        origin_y=-half,
        step_x=2 * half,
        step_y=2 * half,
        name=name,
    )


class SceneState:
    """The scene: `apply` takes what `read_batches` yields.

    `take_events` returns commands that the window has to follow. After ChangeMap, `terrain` is
    another one and the vehicles are gone, as after RflySim3D's change of map. `load` finds the
    terrain of a map's name, by default on the usual search path.
    """

    def __init__(
        self,
        search_path: Sequence[StrPath] = (),
        load: Callable[[str], Terrain] | None = None,
        descriptions: VehicleDescriptions = NONE,
    ) -> None:
        self.vehicles = VehicleTable(descriptions)
        self.labels = Labels()
        self.terrain = flat_ground()
        """Ground about what is seen, in memory: all of it, or a window of a map in tiles."""
        self.whole: Terrain = self.terrain
        """All of the ground."""
        self.terrain_known = False
        """False if flat ground stands in for a map that was not found, or for none."""
        self.map_name = ""
        self.log: deque[str] = deque(maxlen=MAX_LOG_LINES)
        self.reports_vehicles = False
        """RflyReqVehicleData: True if reqVeCrashData is sent."""
        self.collision_mode = False
        """Key P: True if CopterSimCrash is sent."""
        self.position_scale = 1.0
        """RflySetPosScale: factor of all positions that arrive."""
        self._load = load or (lambda name: open_terrain(name, search_path, TILES_MB))
        self._events: deque[commands.ConsoleCommand] = deque(maxlen=MAX_EVENTS)

    def apply(self, update: StateBatch | Packet, now_s: float) -> None:
        """Take over vehicle states, or one packet of another kind.

        No content of a datagram makes it raise.
        """
        if isinstance(update, StateBatch):
            is_weather = update.vehicle_type % STYLE == _WEATHER_CLASS
            vehicles = update.select(~is_weather) if is_weather.any() else update
            self.vehicles.update(vehicles.scaled(self.position_scale), now_s)
            return
        handler = _HANDLERS.get(update.name)
        if handler is None:
            self.add_log_line(f"{update.name}: nothing to show for it")
            return
        handler(self, update.values, now_s)

    def add_log_line(self, text: str) -> None:
        """Add a line to the log, unless it repeats the last one."""
        if not self.log or self.log[-1] != text:
            self.log.append(text)

    def take_events(self) -> list[commands.ConsoleCommand]:
        """Return the events in their order, each once."""
        events = list(self._events)
        self._events.clear()
        return events

    def run_command(self, text: str, now_s: float = 0.0) -> None:
        """Run a console command, given at a time of the labels' clock.

        Errors are added to the log.
        """
        try:
            command = console.parse(text)
        except CommandError as error:
            self.add_log_line(str(error))
            return

        match command:
            case commands.ChangeMap(name) if _is_path(name):
                self.add_log_line(
                    f"RflyChangeMapbyName {name}: "
                    "expected the name of a map on the search path, not a path"
                )
            case commands.ChangeMap(name):
                self.change_map(name)
            case commands.ChangeModel(vehicle_id, vehicle_type):
                self._set_column(vehicle_id, vehicle_type=vehicle_type)
            case commands.ReadCommand("RflyChangeVehicleSize", (vehicle_id, size)):
                self._set_column(vehicle_id, scale=size or 1.0)
            case commands.MoveVehicle():
                self._move(command)
            case commands.ReadCommand("RflyReqVehicleData", (on,)):
                self.reports_vehicles = on
                self.add_log_line(
                    f"vehicle reports to port {FEEDBACK_PORT} are {'on' if on else 'off'}"
                )
            case commands.DeleteVehicles(vehicle_ids):
                self._delete(vehicle_ids)
            case commands.ClearAll():
                self._delete(None)
                self._events.append(commands.ClearSensors(None))
            case commands.ReadCommand("RflyDisableVeMove", (vehicle_ids, disabled)):
                self.vehicles.hold(vehicle_ids, disabled)
            case commands.ReadCommand("RflySetPosScale", (factor,)):
                self.position_scale = factor
                self.add_log_line(f"positions that arrive are multiplied by {factor:g}")
            case commands.ReadCommand("RflySetActuatorPWMs", (vehicle_id, rounds_per_s)):
                turning = [speed for speed in rounds_per_s if speed]
                mean = sum(turning) / max(len(turning), 1)
                self._set_column(vehicle_id, motor_speed_rpm=60.0 * mean)
            case commands.ReadCommand("RflySetSimSpeed", (factor,)):
                self.add_log_line(f"the simulation runs at {factor:g} times real time")

            # keys
            case commands.ViewKey("P", number):
                self.collision_mode = not self.collision_mode if number is None else True
                self.add_log_line(f"collision mode is {'on' if self.collision_mode else 'off'}")
            case commands.ViewKey("ESC"):
                self._delete(None)
            case commands.ViewKey("C"):
                self._change_look()

            case commands.SetLabel():
                self.labels.apply(command, now_s)
            case commands.UnsupportedCommand(text, reason):
                self.add_log_line(f"{text}: {reason}")
            case _:
                self._events.append(command)

    def change_map(self, name: str) -> None:
        """Show another map, without vehicles.

        If it is not found, flat ground is shown, and the log says so.
        """
        try:
            self.show_ground(self._load(name), name)
        except (ConfigError, TerrainError, OSError) as error:
            self.show_ground(flat_ground(name), name)
            self.terrain_known = False
            self.add_log_line(f"flat ground is shown: {error}")

    def show_ground(self, whole: Terrain, name: str) -> None:
        """Show other ground, without vehicles, under the name of a map.

        Raise TerrainError or OSError if it cannot be read.
        """
        self.terrain = whole.window(0.0, 0.0, WINDOW_SAMPLES)
        self.whole = whole
        self.terrain_known = True
        self.map_name = name
        self.vehicles.clear()
        self.labels = Labels()
        self._events.append(commands.ChangeMap(name))

    def _delete(self, vehicle_ids: tuple[int, ...] | None) -> None:
        """Remove vehicles and their labels; None: all."""
        if vehicle_ids is None:
            vehicle_ids = tuple(self.vehicles.id.tolist())
        unknown = self.vehicles.remove(vehicle_ids)
        if unknown:
            self.add_log_line(f"no vehicle {', '.join(map(str, unknown))} was seen yet")
        for vehicle_id in vehicle_ids:
            self.labels.by_id.pop(vehicle_id, None)
        known = tuple(each for each in vehicle_ids if each not in unknown)
        if known:
            self._events.append(commands.DeleteVehicles(known))

    def _change_look(self) -> None:
        """Show the vehicle that came last as the next model of its class."""
        newest = self.vehicles.newest
        if newest is None:
            self.add_log_line("key C: no vehicle was seen yet")
            return

        row = self.vehicles.row(newest)
        shown = int(self.vehicles["vehicle_type"][row])
        looks = looks_of_class(shown)
        following = looks[(looks.index(shown) + 1) % len(looks)] if shown in looks else None
        if following in (None, shown):
            self.add_log_line(f"key C: the list has no other model for type {shown}")
        else:
            self._set_column(newest, vehicle_type=following)

    def _move(self, command: commands.MoveVehicle) -> None:
        row = self.vehicles.row(command.vehicle_id)
        if row is None:
            self.add_log_line(f"no vehicle {command.vehicle_id} was seen yet: it cannot be moved")
            return

        position = np.array(command.position_ned)
        euler = np.array(command.euler)
        if command.relative:
            position = position + self.vehicles["position_ned"][row]
            euler = euler + self.vehicles["euler"][row]

        if np.abs(position).max() > MAX_COORDINATE_M:
            self.add_log_line(
                f"vehicle {command.vehicle_id} would be beyond {MAX_COORDINATE_M:g} m: it stays"
            )
            return

        self._set_column(
            command.vehicle_id, position_ned=position, euler=euler, on_ground=command.on_ground
        )

    def _set_column(self, vehicle_id: int, **values: Any) -> None:
        row: Any = slice(None) if vehicle_id == ALL_VEHICLES else self.vehicles.row(vehicle_id)
        if row is None:
            self.add_log_line(f"no vehicle {vehicle_id} was seen yet")
            return

        for column, value in values.items():
            self.vehicles[column][row] = value

    def _take_command(self, values: Any, now_s: float) -> None:
        self.run_command(values["text"], now_s)

    def _take_attachments(self, values: Any, now_s: float) -> None:
        ids, parents, kinds = (
            np.asarray(values[name]) for name in ("CopterIDs", "AttatchIDs", "AttatchTypes")
        )

        used = ids > 0
        allowed = (kinds >= 0) & (kinds <= ATTACH_ATTITUDE)
        for kind in kinds[used & ~allowed].tolist():
            self.add_log_line(f"VehicleAttatch25: type {kind} is none of 0 to 3")
        used &= allowed

        unknown = self.vehicles.attach(ids[used], parents[used], kinds[used])
        if unknown:
            self.add_log_line(
                f"VehicleAttatch25: no vehicle {', '.join(map(str, unknown))} was seen yet"
            )

    def _take_label(self, values: Any, now_s: float) -> None:
        seconds = values["dispTime"]
        size = values["fontSize"]
        if not (math.isfinite(seconds) and math.isfinite(size)):
            self.add_log_line("CopterMsg: dispTime or fontSize is not finite")
            return

        # the limits of a console command's label
        red, green, blue = (min(max(part, 0), 255) for part in values["RGB"])
        label = commands.SetLabel(
            values["copterID"],
            values["text"],
            (red, green, blue),
            min(max(size, 1.0), 500.0),
            seconds,
            values["dispFlag"],
        )
        self.labels.apply(label, now_s)


def _is_path(name: str) -> bool:
    return name != PurePath(name).name or "\\" in name or ":" in name


_HANDLERS: dict[str, Callable[[SceneState, Any, float], None]] = {
    "Ue4CMD0": SceneState._take_command,
    "Ue4CMD": SceneState._take_command,
    "Ue4CMDNet": SceneState._take_command,
    "VehicleAttatch25": SceneState._take_attachments,
    "CopterMsg": SceneState._take_label,
}
