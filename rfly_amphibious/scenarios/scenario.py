"""Scenario files: vehicle, mission, map, wind, failures and end of a run.

YAML, checked against `data/schemas/scenario.schema.json`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NoReturn

from rfly_amphibious.control.modes import Mode
from rfly_amphibious.dynamics.model import STILL, AmphibiousModel, Method
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.guidance.legs import DriveLeg, Leg, MissionStep, legs_of, steps_of_file
from rfly_amphibious.guidance.manoeuvre import Manoeuvre, Signal
from rfly_amphibious.scenarios.speeds import DRIVE_SPEED, FLY_SPEED
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.events import SWITCHED_SENSORS, Event, Gust, RotorFails, SensorOff
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle.parameter_files import (
    Change,
    KeyPath,
    checked_document,
    load_schema,
    read_parameters,
    shipped_sets,
)
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.config.marked_yaml import Document, Key, key_path
from rfly_common.errors import ConfigError, RflyError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.world.weather import CLEAR, Weather
from rfly_terrain.world.world import World
from rfly_terrain.world.world_file import load_world

_CALM: dict[KeyPath, list[float]] = {
    ("wind", "mean_mps"): [0.0, 0.0, 0.0],
    ("wind", "gust_sigma_mps"): [0.0, 0.0, 0.0],
}
LoadMap = Callable[[str, Sequence[str]], HeightMap]
EndCondition = Literal["mission_done", "standing_after_landing", "crashed", "time"]


@dataclass(frozen=True)
class Scenario:
    """Everything that a run depends on: the same scenario gives the same run."""

    name: str
    params: VehicleParameters
    legs: tuple[Leg, ...]
    terrain: HeightMap | None = None
    """None: level ground at z = 0"""
    start: tuple[float, float] = (0.0, 0.0)
    """x east, y north, m"""
    heading: float = 0.0
    """rad, counter-clockwise from east"""
    wind: Wind = STILL
    events: tuple[Event, ...] = ()
    end: EndCondition = "mission_done"
    end_time: float = 600.0
    """s, at which a run ends at the latest"""
    method: Method = "rk4"
    notes: tuple[str, ...] = ()
    """what a mission file says that is not carried out"""
    manoeuvre: Manoeuvre | None = None
    """in place of legs"""
    world: World | None = None
    """what stands on the ground; None: nothing"""
    weather: Weather = CLEAR
    """for lidar and cameras"""

    def __post_init__(self) -> None:
        for event in self.events:
            if isinstance(event, RotorFails) and not 0 <= event.rotor < self.params.rotors:
                raise ConfigError(_no_rotor(event.rotor + 1, self.params))
            if isinstance(event, SensorOff) and event.sensor not in SWITCHED_SENSORS:
                raise ConfigError(_no_sensor(event.sensor))
        if self.params.steered == "none" and any(isinstance(leg, DriveLeg) for leg in self.legs):
            raise ConfigError(
                f"vehicle {self.params.name!r} steers by its wheels' torques, which no scenario drives; "
                "expected steered wheels, or a mission without way-points on the ground"
            )

    @classmethod
    def load(
        cls,
        name_or_path: str | os.PathLike[str],
        map_folders: Sequence[str] = (),
        changes: Sequence[Change] = (),
        load_map: LoadMap = HeightMap.load,
    ) -> Scenario:
        """A shipped scenario (`shipped_scenarios()`) or a YAML file; what it names lies beside it,
        or is shipped.

        `changes`: values by key path; those below `vehicle` are the vehicle's. Raises ConfigError
        that names file, line, key and what is allowed.
        """
        data, file, name = read_parameters("scenario", "scenarios", name_or_path)
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
        load_map: LoadMap = HeightMap.load,
    ) -> Scenario:
        """The scenario of a file's content; `file` is what errors call it, `folder` holds the files
        that it names.
        """
        of_vehicle = [
            (path[1:], value) for path, value in changes if path[0] == "vehicle" and len(path) > 1
        ]
        others = [
            (path, value) for path, value in changes if path[0] != "vehicle" or len(path) == 1
        ]
        document = checked_document(
            data, file, load_schema("scenario"), "version, vehicle, mission, end", others, _CALM
        )
        return _Reader(document, file, folder, load_map).scenario(
            name or file, map_folders, of_vehicle
        )

    def model(self) -> AmphibiousModel:
        """The vehicle on the scenario's ground, with what stands and moves there."""
        world = self.world or World()
        return AmphibiousModel(
            self.params, self.terrain, solids=world.solids, moving=world.moving_solids
        )

    def simulation(
        self, sensors: SensorParameters, *, noise: bool = True, **more: Any
    ) -> Simulation:
        """A simulation on the scenario's map, with its vehicle, start, wind, events, seed and
        method.

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

    def sensors_off(self, time: float) -> frozenset[str]:
        """Names of the sensors that are switched off at `time` (s)."""
        return frozenset(
            event.sensor
            for event in self.events
            if isinstance(event, SensorOff) and event.off(time)
        )

    def with_seed(self, seed: int) -> Scenario:
        """The same with other gusts."""
        return replace(self, wind=replace(self.wind, seed=seed))


def shipped_scenarios() -> list[str]:
    """Names of the scenarios that come with the package."""
    return shipped_sets("scenarios")


def _weather(given: dict[str, float]) -> Weather:
    keys = (("light", 1.0), ("visibility_m", 0.0), ("cloud_cover", 0.0), ("rain_mmph", 0.0))
    return Weather.told(*(float(given.get(key, default)) for key, default in keys))


def _no_rotor(number: int, params: VehicleParameters) -> str:
    return f"rotor {number}: {params.name!r} has rotors 1 … {params.rotors}"


def _no_sensor(name: str) -> str:
    return f"sensor {name!r}, allowed: {', '.join(SWITCHED_SENSORS)}"


class _Reader:
    """Makes a scenario of a document that fits the schema."""

    def __init__(self, document: Document, file: str, folder: Path, load_map: LoadMap) -> None:
        self._document = document
        self._file = file
        self._folder = folder
        self._load_map = load_map
        self._all: dict[str, Any] = document.value

    def scenario(
        self, name: str, map_folders: Sequence[str], of_vehicle: Sequence[Change]
    ) -> Scenario:
        whole = self._all
        with self._naming("vehicle"):
            params = VehicleParameters.load(self._beside(whole["vehicle"]), of_vehicle)
        terrain = None
        if "map" in whole:
            with self._naming("map"):
                terrain = self._load_map(whole["map"], [*map_folders, str(self._folder)])
        world = self._world(terrain) if "world" in whole else None
        given = whole.get("start", {})
        place = given.get("position_m")
        mission = whole["mission"]
        notes: list[str] = []
        if sum(key in mission for key in ("file", "items", "manoeuvre")) != 1:
            self._fail(("mission",), "expected exactly one of the keys file, items, manoeuvre")
        if "file" in mission:
            with self._naming("mission", "file"):
                steps, home, notes = steps_of_file(
                    self._beside(mission["file"]), terrain, None if place is None else tuple(place)
                )
            start = home if place is None else tuple(place)
        else:
            start = (0.0, 0.0) if place is None else tuple(place)
            steps = [self._step(index, item) for index, item in enumerate(mission.get("items", ()))]
        if terrain is not None and not terrain.inside(*start):
            self._fail(
                ("start", "position_m"),
                f"{list(start)} lies off the map, which spans {terrain.bounds}",
            )
        speeds = (
            mission.get("drive_speed_mps", DRIVE_SPEED),
            mission.get("fly_speed_mps", FLY_SPEED),
        )
        try:
            legs = legs_of(steps, start, terrain, *speeds) if "manoeuvre" not in mission else ()
        except ConfigError as error:
            step = getattr(error, "step", None)
            self._fail(
                ("mission", "items", step)
                if "items" in mission and step is not None
                else ("mission",),
                error,
            )
        heading = (
            math.radians(given["heading_deg"])
            if "heading_deg" in given
            else _first_heading(legs, start)
        )
        wind = whole.get("wind", {})
        end = whole["end"]
        events = tuple(
            self._event(index, event, params) for index, event in enumerate(whole.get("events", ()))
        )
        with self._naming():
            return Scenario(
                name,
                params,
                legs,
                terrain,
                start,
                heading,
                Wind(
                    tuple(wind.get("mean_mps", (0.0, 0.0, 0.0))),
                    tuple(wind.get("gust_sigma_mps", (0.0, 0.0, 0.0))),
                    seed=whole.get("seed", 0),
                    turbulence=float(wind.get("turbulence_mps", 0.0)),
                ),
                events,
                end.get("when", "mission_done"),
                float(end["time_s"]),
                whole.get("method", "rk4"),
                tuple(notes),
                self._manoeuvre(mission["manoeuvre"]) if "manoeuvre" in mission else None,
                world,
                _weather(whole.get("environment", {})),
            )

    def _manoeuvre(self, items: Sequence[dict[str, Any]]) -> Manoeuvre:
        signals = []
        modes = []
        for index, item in enumerate(items):
            path = ("mission", "manoeuvre", index)
            if ("signal" in item) == ("mode" in item):
                self._fail(path, "expected exactly one of the keys signal, mode")
            if "mode" in item:
                modes.append(
                    (
                        float(item["from_s"]),
                        {"takeoff": Mode.TAKEOFF, "land": Mode.LAND}[item["mode"]],
                    )
                )
                continue
            begin = float(item["from_s"])
            end = float(item.get("to_s", 0.0))
            if end <= begin:
                self._fail(
                    (*path, "to_s") if "to_s" in item else path,
                    f"to_s: expected more than from_s, {begin:g}",
                )
            first, last = map(float, item.get("frequency_hz", (0.0, 0.0)))
            shape = float(item.get("value", 0.0)), float(item.get("amplitude", 0.0)), (first, last)
            signals.append(Signal(item["signal"], begin, end, *shape))
        return Manoeuvre(tuple(signals), tuple(sorted(modes, key=lambda mode: mode[0])))

    def _world(self, terrain: HeightMap | None) -> World:
        with self._naming("world"):
            world = load_world(self._beside(self._all["world"]))
        wanted = Path(world.map).stem
        given = self._all.get("map", "")
        if wanted and wanted != Path(given).stem:
            where = f"on the map {given!r}" if given else "on level ground"
            self._fail(
                ("world",),
                f"{world.name!r} is made for the map {world.map!r}, the scenario is {where}",
            )
        return world.on(terrain)

    def _step(self, index: int, item: dict[str, Any]) -> MissionStep:
        mode = item["mode"]
        if mode != "waypoint" and "speed_mps" in item:
            self._fail(
                ("mission", "items", index, "speed_mps"),
                f"a {mode} has none; expected at way-points only",
            )
        for key, where in (("position_m", "takeoff"), ("height_m", "land")):
            if key in item and mode == where:
                why = (
                    "it takes off where it stands"
                    if mode == "takeoff"
                    else "it lands on the ground"
                )
                self._fail(("mission", "items", index, key), f"a {mode} has none: {why}")
        for key, where in (("position_m", "waypoint"), ("height_m", "takeoff")):
            if key not in item and mode == where:
                self._fail(("mission", "items", index), f"a {mode} needs the key {key}")
        place = item.get("position_m")
        return MissionStep(
            mode,
            None if place is None else (float(place[0]), float(place[1])),
            height=item.get("height_m"),
            speed=item.get("speed_mps"),
        )

    def _event(self, index: int, event: dict[str, Any], params: VehicleParameters) -> Event:
        path = ("events", index)
        kinds = ("gust", "rotor_fails", "sensor_off")
        if sum(kind in event for kind in kinds) != 1:
            self._fail(path, f"expected exactly one of the keys {', '.join(kinds)} beside time_s")
        if "duration_s" in event and "sensor_off" not in event:
            self._fail(
                (*path, "duration_s"), "expected beside sensor_off only; a gust's lies within gust"
            )
        time = float(event["time_s"])
        if "gust" in event:
            east, north, up = map(float, event["gust"]["velocity_mps"])
            return Gust(time, (east, north, up), float(event["gust"]["duration_s"]))
        if "sensor_off" in event:
            if event["sensor_off"] not in SWITCHED_SENSORS:
                self._fail((*path, "sensor_off"), _no_sensor(event["sensor_off"]))
            duration = event.get("duration_s")
            return SensorOff(
                time, event["sensor_off"], None if duration is None else float(duration)
            )
        if event["rotor_fails"] > params.rotors:
            self._fail((*path, "rotor_fails"), _no_rotor(event["rotor_fails"], params))
        return RotorFails(time, event["rotor_fails"] - 1)

    @contextmanager
    def _naming(self, *path: Key) -> Iterator[None]:
        """What goes wrong with what a key names, is told with file, line and key."""
        try:
            yield
        except (RflyError, OSError) as error:
            self._fail(
                path,
                f"{error.filename}: {error.strerror}"
                if isinstance(error, FileNotFoundError) and error.filename
                else error,
            )

    def _beside(self, name: str) -> str:
        """A file that the scenario names, from the scenario's folder; a shipped name stays as it
        is.
        """
        path = self._folder / name
        return str(path) if path.is_file() else name

    def _fail(self, path: Sequence[Key], why: object) -> NoReturn:
        key = key_path(path)
        raise ConfigError(
            f"{self._file}:{self._document.line(path)}: {f'{key}: ' if key else ''}{why}"
        ) from None


def _first_heading(legs: Sequence[Leg], start: tuple[float, float]) -> float:
    if not legs:
        return 0.0
    x, y = legs[0].points[0][:2]
    return math.atan2(y - start[1], x - start[0]) if isinstance(legs[0], DriveLeg) else 0.0
