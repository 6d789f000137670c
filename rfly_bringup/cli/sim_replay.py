# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sim replay`: a recorded drive or flight through the state estimator."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rfly_bringup.cli.options import (
    MaybePath,
    MaybeText,
    Overwrite,
    SearchPath,
    check_new_picture,
    file_option,
    optional,
    status,
)
from rfly_bringup.terminal import progress_bar
from rfly_bringup.warm_up import compile_first

if TYPE_CHECKING:
    from rfly_lab.replay.replay import Replay

UNITS = {
    "gps_position": "m",
    "gps_velocity": "m/s",
    "magnetometer": "µT",
    "barometer": "Pa",
    "orientation": "rad",
    "wheel_speed": "m/s",
    "side_slip": "m/s",
    "standstill": "m/s",
    "height": "m",
}
"""Units of the innovations in the table."""
SCALES = {"magnetometer": 1e6}
"""Factors from SI units to UNITS, where they are not 1."""


def replay(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG", help="a recording of a robot's ROS 2 topics: MCAP, .db3, a folder"
        ),
    ],
    vehicle: Annotated[
        str,
        typer.Option(
            metavar="SET",
            help="full, scale, scale_quad, scale_six or a YAML file: wheels, masses, tyres",
        ),
    ] = "scale",
    sensors: Annotated[
        MaybeText,
        optional("noise and places of the sensors (default: the vehicle's set)", metavar="SET"),
    ] = None,
    estimator: Annotated[
        MaybeText, optional("weights of the estimator (default: the vehicle's set)", metavar="SET")
    ] = None,
    topics: Annotated[MaybePath, file_option("which topic is what: YAML")] = None,
    namespace: Annotated[
        MaybeText, optional("the robot's namespace, if the log holds several")
    ] = None,
    map_name: Annotated[
        MaybeText,
        optional(
            "map of the ground (default: the recorded terrain_map, if any)",
            "--map",
            "-m",
            metavar="MAP",
        ),
    ] = None,
    out: Annotated[
        MaybeText, file_option("picture of track, errors and innovations", "--plot", "--out", "-o")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="for programs: one JSON object")] = False,
    overwrite: Overwrite = False,
    search_path: SearchPath = None,
) -> None:
    """Run a recorded drive or flight through the state estimator and the model, and compare.

    The table shows the innovations of each sensor, errors against a recorded reference, and how
    well the model predicts the motion from recorded commands.

    Examples:

        rfly sim replay flight.mcap --out flight.png

        rfly sim replay drive.mcap --vehicle my_robot.yaml --topics my_topics.yaml --json
    """
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters, shipped_sensor_sets
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_autonomy.estimation.estimator_parameters import (
        EstimatorParameters,
        shipped_estimator_sets,
    )
    from rfly_lab.replay.model_check import check_model
    from rfly_lab.replay.recording import read_recording
    from rfly_lab.replay.replay import replay_recording
    from rfly_lab.replay.report import draw_replay, summary
    from rfly_lab.replay.topic_map import TopicMap
    from rfly_terrain.tiles.open_terrain import load_terrain

    # check the arguments before the long work
    check_new_picture(out, overwrite)
    params = VehicleParameters.load(vehicle)
    own = params.name
    aboard = SensorParameters.load(sensors or (own if own in shipped_sensor_sets() else "scale"))
    default = own if own in shipped_estimator_sets() else "scale"
    weights = EstimatorParameters.load(estimator or default)
    topic_map = TopicMap() if topics is None else TopicMap.load(topics)
    terrain = None if map_name is None else load_terrain(map_name, search_path or ())

    with status(f"reading {log}"):
        recording = read_recording(log, params, aboard, weights, topic_map, namespace, terrain)
    compile_first(["amphibious"])
    with progress_bar(log.name) as bar:
        result = replay_recording(recording, params, weights, bar)
    with status("simulating"):
        predictions, notes = check_model(result, params)

    figures = summary(result, predictions, notes)
    if as_json:
        print(json.dumps(figures))
    else:
        _show(result, figures)
    if out is not None:
        draw_replay(result, Path(out))
        if not as_json:
            print(out)


def _show(result: "Replay", figures: dict[str, Any]) -> None:
    """Print innovations, errors, totals and notes of a replay."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    table = Table(
        "sensor",
        "readings",
        "rejected",
        "innovation",
        "unit",
        "normalised²",
        "outside 95 %",
        box=None,
    )
    for column in (1, 2, 3, 5, 6):
        table.columns[column].justify = "right"
    for name, each in figures["innovations"].items():
        # the six numbers of a standstill are speeds, then rates
        rms = math.sqrt(sum(value**2 for value in each["rms"][:3]) / len(each["rms"][:3]))
        table.add_row(
            name,
            str(each["readings"]),
            str(each["rejected"]),
            f"{SCALES.get(name, 1.0) * rms:.3g}",
            UNITS[name],
            f"{each['mean_normalised_square']:.2f}",
            f"{100.0 * each['outside_95']:.1f} %",
        )
    console.print(table)
    console.print("innovation: root mean square of an axis; normalised²: mean, 1 if all is right")

    # errors and totals
    total = Table(show_header=False, box=None)
    for name, text in _totals(result, figures):
        total.add_row(name, text)
    console.print(total)
    for note in figures["notes"]:
        console.print(f"note: {note}", markup=False)


def _totals(result: "Replay", figures: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the rows below the table."""
    rows = []
    errors = figures["errors"]
    if errors is None:
        rows.append(("reference", "none; the estimates are compared with nothing"))
    else:
        east, north, up = errors["position_rms_m"]
        sigma = " ".join(f"{value:.2f}" for value in errors["position_sigma_m"])
        rows += [
            ("reference", f"{figures['topics']['reference']}, {errors['alignment']}"),
            (
                "position",
                f"off by {east:.2f} {north:.2f} {up:.2f} m east, north, up (root mean squares), "
                f"{errors['position_largest_m']:.2f} m at most; the estimator says {sigma} m; "
                f"{100.0 * errors['position_outside_95']:.1f} % outside its 95 % bound",
            ),
        ]
        turn = errors["attitude_rms_rad"]
        if turn is not None:
            angles = " ".join(f"{math.degrees(component):.2f}" for component in turn)
            rows.append(("attitude", f"off by {angles}° about east, north, up"))
        speed = errors["velocity_rms_mps"]
        if speed is not None:
            speeds = " ".join(f"{component:.3f}" for component in speed)
            rows.append(("velocity", f"off by {speeds} m/s east, north, up"))
    for name, each in figures["model"].items():
        speeds = " ".join(f"{value:.3f}" for value in each["velocity_rms_mps"])
        turns = " ".join(f"{value:.3f}" for value in each["rates_rms_radps"])
        change = math.sqrt(sum(value**2 for value in each["change_rms_mps"]))
        text = (
            f"after {each['window_s']:g} s off by {speeds} m/s ahead, left, up and "
            f"{turns} rad/s; the velocity changes by {change:.3f} m/s "
            f"(root mean squares of {each['windows']} windows)"
        )
        rows.append((f"model {name}", text))
    rows.append(
        (
            "replayed",
            f"{result.duration:.2f} s in {result.seconds:.2f} s, "
            f"{result.duration / result.seconds:.1f} × real time",
        )
    )
    if result.alignments > 1:
        rows.append(("alignments", f"{result.alignments}: the filter began anew"))
    return rows
