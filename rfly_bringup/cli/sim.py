"""`rfly sim`: scenarios of the land-air vehicle, faster than real time and without ROS.

No `from __future__ import annotations` here: typer 0.9 (Ubuntu 24.04) cannot read annotations that are still text.
"""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rfly_bringup.cli.options import (
    MaybeInt,
    MaybePath,
    MaybeText,
    MaybeTexts,
    Overwrite,
    SearchPath,
    check_new_file,
    check_target,
    status,
)
from rfly_bringup.cli.sim_fit import fit, modes
from rfly_bringup.cli.sim_sweep import sweep
from rfly_bringup.progress import progress_bar

if TYPE_CHECKING:
    from rfly_amphibious.scenarios.closed_loop import ClosedLoopRun
    from rfly_amphibious.scenarios.recorder import ScenarioRun

sim_app = typer.Typer(
    help="The land-air vehicle without ROS: driven, flown and driven on in scenarios; as a URDF.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@sim_app.command()
def run(
    scenario: Annotated[
        str,
        typer.Argument(metavar="SCENARIO", help="scenario file, or a shipped one: hills, hop, rotor_failure, valley"),
    ],
    plot: Annotated[
        MaybeText,
        typer.Option(metavar="FILE", help="picture of track, heights, attitude, forces and power", show_default=False),
    ] = None,
    csv: Annotated[
        MaybeText, typer.Option(metavar="FILE", help="table of all samples, one row each 20 ms", show_default=False)
    ] = None,
    save: Annotated[
        MaybeText, typer.Option(metavar="FILE", help="NumPy file (.npz) of all samples and the end", show_default=False)
    ] = None,
    parquet: Annotated[
        MaybeText,
        typer.Option(metavar="FILE", help="the table as a Parquet file, for pandas or DuckDB", show_default=False),
    ] = None,
    mcap: Annotated[
        MaybeText,
        typer.Option(
            metavar="FILE", help="ROS 2 messages in an MCAP file, for Foxglove and ros2 bag", show_default=False
        ),
    ] = None,
    seed: Annotated[
        MaybeInt, typer.Option(min=0, max=4294967295, help="of the gusts (default: the scenario's)", show_default=False)
    ] = None,
    estimate: Annotated[
        bool,
        typer.Option(
            "--estimate",
            help="close the loop through noisy sensors, state estimator and both controllers, instead of "
            "the pilot who sees the truth",
        ),
    ] = False,
    sensors: Annotated[
        MaybeText,
        typer.Option(
            metavar="SET",
            help="with --estimate: shipped set of sensors and estimator (default: that of the vehicle's name)",
            show_default=False,
        ),
    ] = None,
    overwrite: Overwrite = False,
    search_path: SearchPath = None,
) -> None:
    """Run a scenario and tell what happened; exit code 1 where its end condition is not reached.

    Examples:

        rfly sim run valley --plot valley.png

        rfly sim run hop --estimate --seed 3

        rfly sim run my_scenario.yaml --seed 3 --csv samples.csv --mcap run.mcap
    """
    from rfly_amphibious.estimation.estimator_parameters import EstimatorParameters
    from rfly_amphibious.scenarios.closed_loop import run_closed_loop
    from rfly_amphibious.scenarios.closed_loop import warm_up as warm_up_closed_loop
    from rfly_amphibious.scenarios.mcap_log import check_mcap
    from rfly_amphibious.scenarios.run import run_scenario
    from rfly_amphibious.scenarios.scenario import Scenario
    from rfly_amphibious.scenarios.table_log import check_parquet
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_amphibious.warm_up import warm_up
    from rfly_terrain.plots.relief import check_picture_format

    targets = {"--csv": csv, "--parquet": parquet, "--mcap": mcap, "--save": save, "--plot": plot}
    for option, target in targets.items():
        check_new_file(option, target, overwrite)
    if plot is not None:
        check_picture_format(Path(plot))
    if parquet is not None:
        check_parquet()
    if mcap is not None:
        check_mcap()
    loaded = Scenario.load(scenario, search_path or ())
    if seed is not None:
        loaded = loaded.with_seed(seed)
    with status("compiling the model, once"):
        warm_up()
        if estimate:
            name = sensors or loaded.params.name
            aboard = SensorParameters.load(name), EstimatorParameters.load(name)
            warm_up_closed_loop(loaded, *aboard)
    with progress_bar(loaded.name) as bar:
        begin = time.perf_counter()
        if estimate:
            closed = run_closed_loop(
                loaded, *aboard, lambda seconds: bar(seconds / loaded.end_time), keep_ticks=mcap is not None
            )
            done = closed.run
        else:
            closed, done = None, run_scenario(loaded, lambda seconds: bar(seconds / loaded.end_time))
        seconds = time.perf_counter() - begin
    _show(done, seconds, closed)
    _write(done, targets, closed)
    if not done.reached:
        print(f"rfly: {done.ending}", file=sys.stderr)
        raise typer.Exit(1)


def _write(done: "ScenarioRun", targets: dict[str, str | None], closed: "ClosedLoopRun | None") -> None:
    from rfly_amphibious.scenarios.mcap_log import write_mcap
    from rfly_amphibious.scenarios.plot import draw_run
    from rfly_amphibious.scenarios.table_log import write_csv, write_parquet

    writers = {
        "--csv": write_csv,
        "--parquet": write_parquet,
        "--mcap": lambda run, path: write_mcap(closed or run, path),
        "--save": lambda run, path: run.save(path),
        "--plot": draw_run,
    }
    asked = {option: target for option, target in targets.items() if target is not None}
    for option, target in asked.items():
        with status(f"writing {target}"):
            writers[option](done, Path(target))
    for target in asked.values():
        print(target)


def _show(done: "ScenarioRun", seconds: float, closed: "ClosedLoopRun | None" = None) -> None:
    from rich.console import Console
    from rich.table import Table

    scenario = done.scenario
    console = Console(highlight=False, soft_wrap=True)
    for text in scenario.notes:
        console.print(f"note: {text}", markup=False)
    events = [(when, mode.value, "") for when, mode in done.modes]
    events += [(when, "", text) for when, text in done.log]
    events += [
        (t.time, "", f"touches down, sinking {t.sink_speed:.2f} m/s, {t.level_speed:.2f} m/s across the ground")
        for t in done.touchdowns
    ]
    happened = Table("time s", "mode", "what", box=None)
    for when, mode, text in sorted(events, key=lambda event: event[0]):
        happened.add_row(f"{when:.2f}", mode, text)
    console.print(happened)
    driven, flown = done.distances()
    where = "level ground" if scenario.terrain is None else scenario.terrain.name
    total = Table(show_header=False, box=None)
    total.add_row("scenario", f"{scenario.name}: {scenario.params.name} over {where}")
    total.add_row("driven, flown", f"{driven:.1f} m, {flown:.1f} m")
    total.add_row(
        "energy at the shafts",
        f"{(done.rotor_energy + done.wheel_energy) / 1000:.2f} kJ: rotors {done.rotor_energy / 1000:.2f} kJ, "
        f"wheels {done.wheel_energy / 1000:.2f} kJ",
    )
    if closed is not None:
        level, upright = closed.rms_error()
        total.add_row(
            "estimated position",
            f"off by {level:.2f} m across the ground, {upright:.2f} m upright (root mean squares), "
            f"{closed.largest_error():.2f} m at most",
        )
    total.add_row("simulated", f"{done.duration:.2f} s in {seconds:.2f} s, {done.duration / seconds:.1f} × real time")
    total.add_row("end", done.ending)
    console.print(total)


sim_app.command()(sweep)
sim_app.command()(fit)
sim_app.command()(modes)


@sim_app.command()
def urdf(
    vehicle: Annotated[
        str, typer.Argument(metavar="SET", help="shipped parameters (full, scale, scale_quad) or a YAML file")
    ] = "scale",
    out: Annotated[
        MaybePath, typer.Option("--output", "--out", "-o", metavar="FILE", help="file to write; by default stdout")
    ] = None,
    prefix: Annotated[str, typer.Option(help="before the names of all links, such as car/")] = "",
    mesh: Annotated[
        MaybeTexts,
        typer.Option(metavar="PART=FILE", help="a mesh instead of boxes: of body, wheel or rotor; may be repeated"),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the vehicle as a URDF: joints, masses and inertia from its parameters.

    Examples:

        rfly sim urdf > scale.urdf

        rfly sim urdf full --output car.urdf --prefix car/ --mesh body=package://my_car/body.dae
    """
    from rfly_amphibious.description.urdf import vehicle_urdf
    from rfly_amphibious.vehicle.parameters import VehicleParameters

    if out is not None:
        check_target(out, overwrite)
    meshes = {}
    for text in mesh or ():
        part, is_given, file = text.partition("=")
        if not is_given:
            raise typer.BadParameter(f"--mesh {text}: expected PART=FILE, such as body=package://my_car/body.dae")
        meshes[part] = file
    made = vehicle_urdf(VehicleParameters.load(vehicle), prefix, meshes)
    if out is None:
        sys.stdout.write(made)
        return
    out.write_text(made, encoding="utf-8")
    print(out)


@sim_app.command("ardupilot-params")
def ardupilot_params(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="file to write, such as quad.parm")],
    vehicle: Annotated[
        str, typer.Option(metavar="SET", help="shipped parameters (full, scale, scale_quad) or a YAML file")
    ] = "scale_quad",
    sensors: Annotated[str, typer.Option(metavar="SET", help="sensor set: a shipped name or a YAML file")] = "scale",
    firmware: Annotated[str, typer.Option(metavar="NAME", help="copter, which flies it, or rover, which drives it")] = (
        "copter"
    ),
    overwrite: Overwrite = False,
) -> None:
    """Write the parameters with which ArduPilot SITL flies or drives the vehicle: frame, motor order, outputs, gains.

    Example:

        rfly sim ardupilot-params quad.parm
    """
    from rfly_amphibious.autopilots.ardupilot_parameters import ardupilot_parameters, parameter_text
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_amphibious.vehicle.parameters import VehicleParameters

    check_target(file, overwrite)
    found = ardupilot_parameters(VehicleParameters.load(vehicle), SensorParameters.load(sensors), firmware)
    file.write_text(parameter_text(found, vehicle, firmware), encoding="utf-8")
    print(file)
