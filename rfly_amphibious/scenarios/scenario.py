# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scenario files: vehicle, mission, map, wind, failures and end of a run.

YAML, checked against `data/schemas/scenario.schema.json`. A manoeuvre is signals over time for
rotors and wheels, from whose log `rfly_lab.identification` finds a vehicle's parameters.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn

from rfly_amphibious.dynamics.model import STILL, AmphibiousModel, Method
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.commands import Mode, RotorQuantity
from rfly_amphibious.simulation.events import SWITCHED_SENSORS, Event, Gust, RotorFails, SensorOff
from rfly_amphibious.simulation.faults import Fault, FaultKind
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.config.documents import load_schema, shipped_names
from rfly_common.config.marked_yaml import Document
from rfly_common.config.parameter_files import Change, KeyPath, checked_document, read_parameters
from rfly_common.errors import ConfigError, Key, RflyError, key_path
from rfly_missions.mission.legs import (
    DRIVE_SPEED,
    FLY_SPEED,
    DriveLeg,
    Leg,
    MissionStep,
    StepError,
    legs_of,
    steps_of_file,
)
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.map_files.search import map_name
from rfly_terrain.tiles.open_terrain import load_terrain
from rfly_terrain.world.weather import CLEAR, Weather
from rfly_terrain.world.world import World
from rfly_terrain.world.world_file import load_world

Channel = Literal[
    "lift_n", "roll_nm", "pitch_nm", "yaw_nm", "steering_rad", "drive_nm", "brake_nm", "height_m"
]
"""Channel of a signal.

`lift_n`: thrust on the ground; `roll_nm`, `pitch_nm`, `yaw_nm`: moments of the rotors;
`steering_rad`: of the virtual wheel; `drive_nm`, `brake_nm`: torques of each wheel while the
vehicle drives; `height_m`: of a flight above the take-off.
"""


class Signal(NamedTuple):
    """Signal of a channel: value + amplitude · sin, at a frequency that changes evenly."""

    channel: Channel
    begin: float
    """Begin, s."""

    end: float
    """End, s."""

    value: float = 0.0
    """Mean, in the channel's unit."""

    amplitude: float = 0.0
    """Amplitude, in the channel's unit."""

    frequency: tuple[float, float] = (0.0, 0.0)
    """Frequencies at begin and end, Hz."""

    def at(self, time: float) -> float:
        """Return the value at a time (s) within the signal, in the channel's unit."""
        t = time - self.begin
        first, last = self.frequency
        cycles = first * t + 0.5 * (last - first) * t * t / (self.end - self.begin)
        return self.value + self.amplitude * math.sin(math.tau * cycles)


@dataclass(frozen=True)
class Manoeuvre:
    """Signals, and modes with the time (s) from which they are requested.

    Signals of one channel add up.
    """

    signals: tuple[Signal, ...]
    modes: tuple[tuple[float, Mode], ...] = ()

    def value(self, channel: Channel, time: float) -> float | None:
        """Return the sum of a channel's signals at a time (s); None: there is none."""
        values = [
            s.at(time) for s in self.signals if s.channel == channel and s.begin <= time < s.end
        ]
        return sum(values) if values else None


_CALM: dict[KeyPath, list[float]] = {
    ("wind", "mean_mps"): [0.0, 0.0, 0.0],
    ("wind", "gust_sigma_mps"): [0.0, 0.0, 0.0],
}
"""Values of keys that a change may name though the file has not got them."""

LoadMap = Callable[[str, Sequence[str]], HeightMap]
"""Function that loads a map by its name and the folders to look in."""

EndCondition = Literal["mission_done", "standing_after_landing", "crashed", "time"]


@dataclass(frozen=True)
class Scenario:
    """Everything on which a run depends: the same scenario gives the same run."""

    name: str
    params: VehicleParameters
    """Vehicle."""

    legs: tuple[Leg, ...]
    """Legs of the mission."""

    terrain: HeightMap | None = None
    """Map; None: level ground at z = 0."""

    start: tuple[float, float] = (0.0, 0.0)
    """Place of the start, x east, y north, m."""

    heading: float = 0.0
    """Heading at the start, rad, counter-clockwise from east."""

    wind: Wind = STILL
    events: tuple[Event, ...] = ()
    end: EndCondition = "mission_done"
    """Condition on which the run ends."""

    end_time: float = 600.0
    """Time at which the run ends at the latest, s."""

    method: Method = "rk4"
    """Method of integration."""

    rotor_command: RotorQuantity = "speed"
    """Quantity by which the controllers command the rotors."""

    notes: tuple[str, ...] = ()
    """Parts of a mission file that are not carried out."""

    manoeuvre: Manoeuvre | None = None
    """Manoeuvre, in place of legs."""

    world: World | None = None
    """Objects on the ground; None: nothing."""

    weather: Weather = CLEAR
    """Weather for lidar and cameras."""

    def __post_init__(self) -> None:
        if self.manoeuvre is not None and self.rotor_command == "torque":
            raise ConfigError("rotor_command: torque, but a manoeuvre's signals change speeds")
        for event in self.events:
            if isinstance(event, RotorFails) and not 0 <= event.rotor < self.params.rotors:
                raise ConfigError(_no_rotor(event.rotor + 1, self.params))
            if isinstance(event, SensorOff) and event.sensor not in SWITCHED_SENSORS:
                raise ConfigError(_no_sensor(event.sensor))
            if isinstance(event, Fault):
                event.check(self.params)

    @classmethod
    def load(
        cls,
        name_or_path: str | os.PathLike[str],
        map_folders: Sequence[str] = (),
        changes: Sequence[Change] = (),
        load_map: LoadMap = load_terrain,
    ) -> Scenario:
        """Load a shipped scenario (`shipped_scenarios()`) or a YAML file.

        Files that it names lie in its folder, or are shipped. `changes`: values by key path; those
        below `vehicle` are the vehicle's. Raise ConfigError that names file, line, key and what is
        allowed.
        """
        data, file, name = read_parameters("scenario", "rfly_amphibious", "scenarios", name_or_path)
        return cls.parse(data, file, name, Path(file).parent, map_folders, changes, load_map)

    @classmethod
    def parse(
        cls,
        data: bytes,
        file: str,
        name: str = "",
        folder: Path = Path(),
        map_folders: Sequence[str] = (),
        changes: Sequence[Change] = (),
        load_map: LoadMap = load_terrain,
    ) -> Scenario:
        """Return the scenario in a file's content.

        `file`: the name for errors; `folder`: of the files that it names.
        """
        vehicle_changes = []
        own_changes = []
        for path, value in changes:
            if path[0] == "vehicle" and len(path) > 1:
                vehicle_changes.append((path[1:], value))
            else:
                own_changes.append((path, value))

        schema = load_schema("rfly_amphibious", "scenario")
        document = checked_document(
            data, file, schema, "version, vehicle, mission, end", own_changes, _CALM
        )
        reader = _ScenarioReader(document, file, folder, load_map)
        return reader.scenario(name or file, map_folders, vehicle_changes)

    def model(self) -> AmphibiousModel:
        """Return the vehicle on the scenario's ground, with all objects there."""
        world = self.world or World()
        return AmphibiousModel(
            self.params,
            self.terrain,
            solids=world.solids,
            moving=world.moving_solids,
            friction=world.friction,
        )

    def simulation(
        self, sensors: SensorParameters, *, noise: bool = True, **more: Any
    ) -> Simulation:
        """Return a simulation of the scenario, with its sensors.

        `more`: further keywords of Simulation.
        """
        return Simulation(
            self.model(),
            sensors,
            (*self.start, self.heading),
            wind=self.wind,
            seed=self.wind.seed,
            noise=noise,
            method=self.method,
            events=self.events,
            **more,
        )

    def with_seed(self, seed: int) -> Scenario:
        """Return the same scenario with other gusts."""
        return replace(self, wind=replace(self.wind, seed=seed))


def shipped_scenarios() -> list[str]:
    """Return the names of the shipped scenarios."""
    return shipped_names("rfly_amphibious", "scenarios")


def _weather(section: dict[str, float]) -> Weather:
    """Return the weather of a section of a file."""
    keys = (("light", 1.0), ("visibility_m", 0.0), ("cloud_cover", 0.0), ("rain_mmph", 0.0))
    return Weather.from_values(*(float(section.get(key, default)) for key, default in keys))


def _no_rotor(number: int, params: VehicleParameters) -> str:
    """Return the message for a rotor that the vehicle has not got."""
    return f"rotor {number}: {params.name!r} has rotors 1 … {params.rotors}"


def _no_sensor(name: str) -> str:
    """Return the message for a sensor that cannot be switched off."""
    return f"sensor {name!r}, allowed: {', '.join(SWITCHED_SENSORS)}"


_REFUSED_KEYS = {
    "takeoff": ("position_m", "it takes off where it stands"),
    "land": ("height_m", "it lands on the ground"),
}
"""Key that an item of each mode must not have, and the reason."""

_KEYS_OF_LEGS = ("drive_speed_mps", "fly_speed_mps", "rolling", "thrust_assist")
"""Keys of a mission that a manoeuvre has no use for."""

_NEEDED_KEYS = {"waypoint": "position_m", "takeoff": "height_m"}
"""Key that an item of each mode needs."""


class _ScenarioReader:
    """Reader of a document that fits the schema."""

    def __init__(self, document: Document, file: str, folder: Path, load_map: LoadMap) -> None:
        self._document = document
        self._file = file
        self._folder = folder
        self._load_map = load_map
        self._content: dict[str, Any] = document.value

    def scenario(
        self, name: str, map_folders: Sequence[str], vehicle_changes: Sequence[Change]
    ) -> Scenario:
        """Return the scenario, with changes to its vehicle."""
        content = self._content
        with self._naming("vehicle"):
            params = VehicleParameters.load(self._beside(content["vehicle"]), vehicle_changes)
        terrain = None
        if "map" in content:
            with self._naming("map"):
                terrain = self._load_map(content["map"], [*map_folders, str(self._folder)])
        world = self._world(terrain) if "world" in content else None

        # mission
        mission = content["mission"]
        steps, start, notes = self._steps(terrain)
        if terrain is not None and not terrain.inside(*start):
            self._fail(
                ("start", "position_m"),
                f"{list(start)} lies off the map, which spans {terrain.bounds}",
            )
        legs = self._legs(steps, start, terrain) if "manoeuvre" not in mission else ()
        heading = _first_heading(legs, start)
        if "heading_deg" in content.get("start", {}):
            heading = math.radians(content["start"]["heading_deg"])

        # wind, events and end
        wind = content.get("wind", {})
        end = content["end"]
        events = tuple(
            self._event(index, event, params)
            for index, event in enumerate(content.get("events", ()))
        )

        with self._naming():
            return Scenario(
                name,
                params,
                legs,
                terrain=terrain,
                start=start,
                heading=heading,
                wind=Wind(
                    tuple(wind.get("mean_mps", (0.0, 0.0, 0.0))),
                    tuple(wind.get("gust_sigma_mps", (0.0, 0.0, 0.0))),
                    seed=content.get("seed", 0),
                    turbulence=float(wind.get("turbulence_mps", 0.0)),
                    roughness=float(wind.get("roughness_m", 0.0)),
                    lee=bool(wind.get("lee", False)),
                ),
                events=events,
                end=end.get("when", "mission_done"),
                end_time=float(end["time_s"]),
                method=content.get("method", "rk4"),
                rotor_command=content.get("rotor_command", "speed"),
                notes=tuple(notes),
                manoeuvre=(
                    self._manoeuvre(mission["manoeuvre"]) if "manoeuvre" in mission else None
                ),
                world=world,
                weather=_weather(content.get("environment", {})),
            )

    def _steps(
        self, terrain: HeightMap | None
    ) -> tuple[list[MissionStep], tuple[float, float], list[str]]:
        """Return the steps of the mission, the place of the start, and notes on a mission file."""
        mission = self._content["mission"]
        if sum(key in mission for key in ("file", "items", "manoeuvre")) != 1:
            self._fail(("mission",), "expected exactly one of the keys file, items, manoeuvre")
        for key in _KEYS_OF_LEGS:
            if "manoeuvre" in mission and key in mission:
                self._fail(("mission", key), "expected with file or items only")

        position = self._content.get("start", {}).get("position_m")
        place = None if position is None else tuple(position)
        if "file" in mission:
            with self._naming("mission", "file"):
                steps, home, notes = steps_of_file(self._beside(mission["file"]), terrain, place)
            assisted = bool(mission.get("thrust_assist", False))
            steps = [replace(step, thrust_assist=assisted) for step in steps]
            return steps, home if place is None else place, notes
        steps = [self._step(index, item) for index, item in enumerate(mission.get("items", ()))]
        return steps, (0.0, 0.0) if place is None else place, []

    def _legs(
        self, steps: Sequence[MissionStep], start: tuple[float, float], terrain: HeightMap | None
    ) -> tuple[Leg, ...]:
        """Return the legs of the mission's steps."""
        mission = self._content["mission"]
        drive_speed = mission.get("drive_speed_mps", DRIVE_SPEED)
        fly_speed = mission.get("fly_speed_mps", FLY_SPEED)
        try:
            may_roll = bool(mission.get("rolling", False))
            return legs_of(steps, start, terrain, drive_speed, fly_speed, may_roll)
        except StepError as error:
            path = ("mission", "items", error.step) if "items" in mission else ("mission",)
            self._fail(path, error)
        except ConfigError as error:
            self._fail(("mission",), error)

    def _manoeuvre(self, items: Sequence[dict[str, Any]]) -> Manoeuvre:
        """Return the manoeuvre of a list of signals and modes."""
        signals = []
        modes = []
        for index, item in enumerate(items):
            path = ("mission", "manoeuvre", index)
            if ("signal" in item) == ("mode" in item):
                self._fail(path, "expected exactly one of the keys signal, mode")

            begin = float(item["from_s"])
            if "mode" in item:
                mode = {"takeoff": Mode.TAKEOFF, "land": Mode.LAND}[item["mode"]]
                modes.append((begin, mode))
                continue

            end = float(item.get("to_s", 0.0))
            if end <= begin:
                self._fail(
                    (*path, "to_s") if "to_s" in item else path,
                    f"to_s: expected more than from_s, {begin:g}",
                )

            first, last = map(float, item.get("frequency_hz", (0.0, 0.0)))
            signal = Signal(
                item["signal"],
                begin,
                end,
                value=float(item.get("value", 0.0)),
                amplitude=float(item.get("amplitude", 0.0)),
                frequency=(first, last),
            )
            signals.append(signal)

        return Manoeuvre(tuple(signals), tuple(sorted(modes, key=lambda mode: mode[0])))

    def _world(self, terrain: HeightMap | None) -> World:
        """Return the world on the ground. It has to be made for the scenario's map."""
        with self._naming("world"):
            world = load_world(self._beside(self._content["world"]))

        wanted = map_name(world.map)
        name = self._content.get("map", "")
        if wanted and wanted != map_name(name):
            where = f"on the map {name!r}" if name else "on level ground"
            self._fail(
                ("world",),
                f"{world.name!r} is made for the map {world.map!r}, the scenario is {where}",
            )

        return world.on(terrain)

    def _step(self, index: int, item: dict[str, Any]) -> MissionStep:
        """Return the step of an item of the mission."""
        mode = item["mode"]
        if mode != "waypoint" and "speed_mps" in item:
            self._fail(
                ("mission", "items", index, "speed_mps"),
                f"a {mode} has none; expected at way-points only",
            )

        if mode == "waypoint" and "rolling" in item:
            self._fail(
                ("mission", "items", index, "rolling"),
                "a waypoint has none; expected at take-offs and landings only",
            )
        if "rolling" in item and self._content["mission"].get("rolling", False):
            self._fail(
                ("mission", "items", index, "rolling"), "the mission's own key rolling decides that"
            )

        refused, reason = _REFUSED_KEYS.get(mode, ("", ""))
        if refused in item:
            self._fail(("mission", "items", index, refused), f"a {mode} has none: {reason}")
        needed = _NEEDED_KEYS.get(mode)
        if needed is not None and needed not in item:
            self._fail(("mission", "items", index), f"a {mode} needs the key {needed}")

        if mode != "waypoint" and "thrust_assist" in item:
            self._fail(
                ("mission", "items", index, "thrust_assist"),
                f"a {mode} has none; expected at way-points only",
            )

        place = item.get("position_m")
        assisted = self._content["mission"].get("thrust_assist", False)
        return MissionStep(
            mode,
            None if place is None else (float(place[0]), float(place[1])),
            height=item.get("height_m"),
            speed=item.get("speed_mps"),
            rolling=item.get("rolling", False),
            thrust_assist=bool(item.get("thrust_assist", assisted)),
        )

    def _event(self, index: int, event: dict[str, Any], params: VehicleParameters) -> Event:
        """Return an event of the scenario."""
        path = ("events", index)
        kinds = ("gust", "rotor_fails", "sensor_off", "fault")
        if sum(kind in event for kind in kinds) != 1:
            self._fail(
                path, f"expected exactly one of the keys {', '.join(kinds)} in addition to time_s"
            )
        if "duration_s" in event and not ("sensor_off" in event or "fault" in event):
            self._fail(
                (*path, "duration_s"),
                "expected with sensor_off and fault only; a gust's lies within gust",
            )

        time = float(event["time_s"])
        duration = float(event["duration_s"]) if "duration_s" in event else None
        if "fault" in event:
            return self._fault(path, event["fault"], time, duration, params)

        if "gust" in event:
            east, north, up = map(float, event["gust"]["velocity_mps"])
            return Gust(time, (east, north, up), float(event["gust"]["duration_s"]))

        if "sensor_off" in event:
            sensor = event["sensor_off"]
            if sensor not in SWITCHED_SENSORS:
                self._fail((*path, "sensor_off"), _no_sensor(sensor))
            return SensorOff(time, sensor, duration)

        if event["rotor_fails"] > params.rotors:
            self._fail((*path, "rotor_fails"), _no_rotor(event["rotor_fails"], params))
        return RotorFails(time, event["rotor_fails"] - 1)

    def _fault(
        self,
        path: tuple[Key, ...],
        section: dict[str, Any],
        time: float,
        duration: float | None,
        params: VehicleParameters,
    ) -> Fault:
        """Return the fault in a section of an event."""
        value = section.get("value", ())
        numbers = value if isinstance(value, (list, tuple)) else (value,)
        fault = Fault(
            time,
            section["part"],
            FaultKind(section["kind"]),
            tuple(float(number) for number in numbers),
            section.get("quantity", ""),
            duration,
        )
        with self._naming(*path, "fault"):
            fault.check(params)
        return fault

    @contextmanager
    def _naming(self, *path: Key) -> Iterator[None]:
        """Raise errors from inside again, with file, line and key."""
        try:
            yield
        except (RflyError, OSError) as error:
            text: object = error
            if isinstance(error, FileNotFoundError) and error.filename:
                text = f"{error.filename}: {error.strerror}"
            self._fail(path, text)

    def _beside(self, name: str) -> str:
        """Return the path of a file in the scenario's folder; a shipped name stays as it is."""
        path = self._folder / name
        return str(path) if path.is_file() else name

    def _fail(self, path: Sequence[Key], why: object) -> NoReturn:
        """Raise ConfigError that names file, line and key."""
        key = key_path(path)
        raise ConfigError(
            f"{self._file}:{self._document.line(path)}: {f'{key}: ' if key else ''}{why}"
        ) from None


def _first_heading(legs: Sequence[Leg], start: tuple[float, float]) -> float:
    """Return the heading to the first way-point that is driven to, rad."""
    if not legs or not isinstance(legs[0], DriveLeg):
        return 0.0
    x, y = legs[0].points[0]
    return math.atan2(y - start[1], x - start[0])
