# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The attacked process of `attacks.files`: read the files named on stdin, one answer line each.

The line `reader NAME` chooses the reader for the files that follow; its answer is "ready".

An answer is JSON: the outcome ("read", or the typed error), what is wrong with that ("" if
nothing), the largest resident memory so far, 10^6 bytes, and the processor time used, s.
"""

from __future__ import annotations

import json
import math
import os
import resource
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

del sys.path[0]  # this folder; what is attacked is imported by its own name

from rfly_common.errors import RflyError  # noqa: E402

CHOOSE = "reader"
"""First word of a line that chooses a reader."""
ADDRESS_SPACE = 8 << 30
"""Limit that protects the machine, bytes; the resident memory is what counts."""
LONGEST_TEXT = 2000
RUNS_S = 0.3
"""Processor time for which a scenario runs, s."""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # libpng writes about each broken stream
    with redirect_stdout(sys.stderr):
        for line in sys.stdin:
            start = time.process_time()
            word, _, name = line.rstrip("\n").partition(" ")
            if word == CHOOSE:
                read = READERS[name]()
                came, wrong = "ready", ""
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", RuntimeWarning)
                    came, wrong = _outcome(read, Path(line.rstrip("\n")))
            print(
                json.dumps((came, wrong, _memory_mb(), time.process_time() - start)),
                file=answers,
                flush=True,
            )


def _outcome(read: Callable[[Path], object], path: Path) -> tuple[str, str]:
    """Return the outcome of a file, and what is wrong with it."""
    try:
        read(path)
    except (RflyError, OSError) as error:
        text = str(error)
        kind = type(error).__name__
        if "\n" in text or len(text) > LONGEST_TEXT:
            return kind, f"a text of {len(text)} characters or several lines: {text[:100]!r}"
        return kind, ""
    except BaseException as error:  # noqa: BLE001  whatever it is, it must not come out
        return type(error).__name__, f"{type(error).__name__}: {error}"[:300]
    return "read", ""


def _memory_mb() -> float:
    """Return the largest resident memory so far, 10^6 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def _map() -> Callable[[Path], object]:
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.map_files.png_txt import read_map
    from rfly_terrain.map_files.search import MapFiles

    return lambda path: HeightMap.of_map(
        read_map(MapFiles(path.with_suffix(".png"), path.with_suffix(".txt")))
    )


def _array() -> Callable[[Path], object]:
    from rfly_terrain.files.arrays import import_array

    def read(path: Path) -> object:
        try:
            return import_array(path)
        except RflyError:
            return import_array(path, cell_size=(1.0, 1.0))

    return read


def _raster() -> Callable[[Path], object]:
    from rfly_terrain.files.dem_import import import_dem

    def read(path: Path) -> object:
        try:
            return import_dem(path, fill_nodata=True)
        except RflyError:
            return import_dem(path, fill_nodata=True, crs="EPSG:4326")

    return read


def _placed_raster() -> Callable[[Path], object]:
    """Return a reader that checks where the ground of an honest raster lies afterwards."""
    from rfly_terrain.files.dem_import import import_dem

    def read(path: Path) -> object:
        terrain = import_dem(path, fill_nodata=True)
        expected = json.loads(path.with_suffix(".json").read_text())
        if not expected:
            return terrain
        if "refused" in expected:
            raise AssertionError("degrees were taken for metres")

        latitude, longitude, _ = terrain.geo_origin
        right_latitude, right_longitude = expected["place"]
        east = (longitude - right_longitude) * math.cos(math.radians(latitude))
        if math.hypot(latitude - right_latitude, east) > 1e-6:
            raise AssertionError(f"the origin is {latitude}, {longitude}")
        reach = expected["reach"]
        step = max(terrain.step_x, terrain.step_y)
        for x, y in ((0, 0), (reach, 0), (-reach, 0), (0, reach), (0, -reach)):
            height = terrain.altitude(float(x), float(y))
            right = (50.0 * y + 30.0 * x) * expected["slope"]
            # own axes may be turned by 10 degrees
            if abs(height - right) > 80.0 * expected["slope"] * (0.2 * reach + step):
                raise AssertionError(f"at {x:g}, {y:g} {height:g} m, expected {right:g}")
        return terrain

    return read


def _occupancy() -> Callable[[Path], object]:
    from rfly_terrain.occupancy.files import load_map

    return load_map


def _query_points() -> Callable[[Path], object]:
    from rfly_terrain.files.points import read_points

    return read_points


def _waypoints() -> Callable[[Path], object]:
    from rfly_trajectory.paths.point_files import read_points

    return lambda path: read_points(path, (47.0, 8.0, 500.0), heights=True)


def _mission() -> Callable[[Path], object]:
    from rfly_missions.mission.files import read_mission

    return read_mission


def _recording() -> Callable[[Path], object]:
    from rfly_ue_bridge.datagram_recording.pcap import RecordingReader

    def read(path: Path) -> object:
        with RecordingReader(path) as recording:
            return sum(1 for _ in recording)

    return read


def _vehicle_xml() -> Callable[[Path], object]:
    from rfly_collision.shapes.vehicle_xml import read_vehicle_xml

    return lambda path: read_vehicle_xml(path).with_center_height(1.0)


def _parameter_file() -> Callable[[Path], object]:
    from rfly_bringup.nodes.argument_files import check_params_file

    return lambda path: check_params_file(str(path), [])


def _mcap() -> Callable[[Path], object]:
    """Return a reader like `rfly replay`: topics, their types, and all messages."""
    from rfly_bringup.ros.topic_taps import message_definition
    from rfly_common.untrusted_files.mcap_reader import McapReader

    def read(path: Path) -> object:
        before = set(sys.modules)
        with McapReader(path) as reader:
            for topic in reader.topics.values():
                with suppress(RflyError):
                    message_definition(topic.type)
            count = sum(1 for _ in reader)

        # names in a recording must not be imported
        foreign = {"antigravity", "this"} & (set(sys.modules) - before)
        if foreign:
            raise AssertionError(f"a recording had {foreign} imported")

        return count

    return read


def _fit_log() -> Callable[[Path], object]:
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_lab.identification.vehicle_fit import fit_vehicle, fitted_document
    from rfly_lab.identification.vehicle_log import read_log

    vehicle = VehicleParameters.load("scale")
    return lambda path: fitted_document(
        "scale", fit_vehicle(read_log(path, vehicle), vehicle), path.name
    )


def _replay_log() -> Callable[[Path], object]:
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
    from rfly_lab.replay.model_check import check_model
    from rfly_lab.replay.recording import read_recording
    from rfly_lab.replay.replay import replay_recording
    from rfly_lab.replay.report import summary

    vehicle = VehicleParameters.load("scale")
    sensors = SensorParameters.load("scale")
    weights = EstimatorParameters.load("scale")

    def read(path: Path) -> object:
        recording = read_recording(path, vehicle, sensors, weights)
        result = replay_recording(recording, vehicle, weights)
        return summary(result, *check_model(result, vehicle))

    return read


def _scenario() -> Callable[[Path], object]:
    """Return a reader that also runs a scenario for a while."""
    from rfly_amphibious.scenarios.scenario import Scenario
    from rfly_lab.runs.run import run_scenario

    def read(path: Path) -> object:
        scenario = Scenario.load(path)
        until = time.process_time() + RUNS_S

        def stop(_: float) -> None:
            if time.process_time() > until:
                raise TimeoutError("it runs")

        with suppress(TimeoutError):
            run_scenario(scenario, stop)
        return scenario

    return read


def _sensors() -> Callable[[Path], object]:
    """Return a reader that also measures with the sensors of a vehicle at rest."""
    from rfly_amphibious.dynamics.model import AmphibiousModel, Controls
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_amphibious.sensors.sensor_suite import SensorSuite
    from rfly_amphibious.vehicle.parameters import VehicleParameters

    model = AmphibiousModel(VehicleParameters.load("scale"))
    state = model.standing()

    def read(path: Path) -> object:
        sensors = SensorParameters.load(path)
        return SensorSuite(model, sensors).advance(state, Controls(), 0.2)

    return read


def _osm() -> Callable[[Path], object]:
    import numpy as np

    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.world.osm import import_osm

    place = {"origin_x": -200.0, "origin_y": -200.0, "step_x": 10.0, "step_y": 10.0}
    level = HeightMap(np.zeros((41, 41)), **place, geo_origin=(47.0, 8.0, 500.0))
    return lambda path: import_osm(path, level)


def _by_name(module: str, name: str) -> Callable[[], Callable[[Path], object]]:
    """Return a loader that takes a path or a name: `module.name`, or a method of a class in it."""

    def loader() -> Callable[[Path], object]:
        import importlib

        member: Any = importlib.import_module(module)
        for part in name.split("."):
            member = getattr(member, part)
        load: Callable[[Path], object] = member
        return load

    return loader


READERS: dict[str, Callable[[], Callable[[Path], object]]] = {
    "map": _map,
    "array": _array,
    "raster": _raster,
    "placed raster": _placed_raster,
    "occupancy": _occupancy,
    "query points": _query_points,
    "waypoints": _waypoints,
    "mission": _mission,
    "recording": _recording,
    "vehicle xml": _vehicle_xml,
    "parameter file": _parameter_file,
    "fleet": _by_name("rfly_trajectory.fleet.fleet_file", "load_fleet"),
    "placements": _by_name("rfly_ue_bridge.objects.placement_file", "load_placements"),
    "shapes": _by_name("rfly_collision.shapes.vehicle_shapes", "load_shapes"),
    "vehicle classes": _by_name("rfly_terrain.planning.vehicle_classes", "load_vehicle_classes"),
    "scenario": _scenario,
    "vehicle": _by_name("rfly_amphibious.vehicle.parameters", "VehicleParameters.load"),
    "sensors": _sensors,
    "mcap": _mcap,
    "fit log": _fit_log,
    "replay log": _replay_log,
    "osm": _osm,
    "mat maps": _by_name("rfly_terrain.occupancy.random_maps", "load_mat_maps"),
    "world": _by_name("rfly_terrain.world.world_file", "load_world"),
    "estimator": _by_name(
        "rfly_autonomy.estimation.estimator_parameters", "EstimatorParameters.load"
    ),
}


if __name__ == "__main__":
    main()
