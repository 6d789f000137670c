# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sim`: scenarios and sweeps of the land-air vehicle, faster than real time, without ROS."""

import itertools
import math
import sys
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rfly_bringup.cli import options
from rfly_bringup.cli.sim_faults import faults
from rfly_bringup.cli.sim_fit import fit, modes
from rfly_bringup.cli.sim_replay import replay
from rfly_bringup.terminal import printable, progress_bar
from rfly_bringup.warm_up import compile_first
from rfly_common.errors import ConfigError
from rfly_common.files import write_text

if TYPE_CHECKING:
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters
    from rfly_common.config.parameter_files import Change
    from rfly_lab.runs.closed_loop import ClosedLoopRun
    from rfly_lab.runs.recorder import ScenarioRun
    from rfly_lab.runs.sweep import Result

_MAX_ENDINGS = 8
"""Most endings other than the goal that a sweep lists."""


_Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO",
        help="scenario file, or a shipped one: hills, hop, rotor_failure, valley",
        autocompletion=options.COMPLETIONS["scenario"],
    ),
]
_ESTIMATE = (
    "close the loop with noisy sensors, state estimator and both controllers, instead of a pilot "
    "who sees the true state"
)
_VEHICLE: Any = {
    "metavar": "SET",
    "help": "shipped parameters (full, scale, scale_quad, scale_six) or a YAML file",
    "autocompletion": options.COMPLETIONS["vehicle"],
}
_Sensors = Annotated[
    str,
    typer.Option(
        metavar="SET",
        help="sensor set: a shipped name or a YAML file (default: the vehicle's, or scale)",
        show_default=False,
        autocompletion=options.COMPLETIONS["sensors"],
    ),
]


def sweep(
    scenario: _Scenario,
    vary: Annotated[
        options.MaybeTexts,
        options.optional(
            "a key of the scenario, or of its vehicle as vehicle.KEY, and its values: a,b,c or "
            "start:stop or start:stop:step (without stop itself); repeatable: all combinations run",
            metavar="KEY=VALUES",
        ),
    ] = None,
    out: Annotated[options.MaybeText, options.file_option("table of the results, .csv")] = None,
    jobs: Annotated[
        options.MaybeInt, options.optional("parallel runs (default: one per core)", min=1)
    ] = None,
    dask: options.DaskOption = None,
    plot: Annotated[
        options.MaybeText, options.file_option("picture of results over the varied values")
    ] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help=_ESTIMATE)] = False,
    overwrite: options.Overwrite = False,
    search_path: options.SearchPath = None,
) -> None:
    """Run a scenario with all combinations of values; the table does not depend on --jobs.

    Each row is written when its run ends, so a sweep that is killed leaves those that are done.

    Examples:

        rfly sim sweep hop --vary seed=0:20 --vary "wind.mean_mps[1]=0,2,4" --out wind.csv

        rfly sim sweep valley --vary vehicle.mass.body_kg=18:24:2 --jobs 4 --out mass.csv

        rfly sim run wind.csv --row 17 --plot run_17.png
    """
    from rfly_amphibious.warm_up import warm_up
    from rfly_lab.runs.plot import draw_sweep
    from rfly_lab.runs.sweep import (
        ResultTable,
        Sweep,
        Variation,
        check_table,
        run_sweep,
        run_sweep_on_dask,
    )

    # check the arguments before the long work
    options.check_cluster(jobs, dask)
    options.check_target(out, overwrite)
    options.check_new_picture(plot, overwrite)
    if out is not None:
        check_table(Path(out))

    with options.status("reading the scenario"):
        loaded = Sweep.load(
            scenario, [Variation.parse(text) for text in vary or ()], search_path or (), estimate
        )
    if dask is None:
        compile_first(["amphibious"])
        with options.status("loading the model"):
            warm_up()

    begin = time.perf_counter()
    with ExitStack() as closing:
        bar = closing.enter_context(progress_bar(f"{scenario}, {len(loaded)} runs", says=True))
        table = None if out is None else closing.enter_context(ResultTable(loaded, Path(out)))
        done = itertools.count(1)

        def keep(run: int, result: "Result") -> None:
            if table is not None:
                table.add(run, result)
            bar(next(done) / len(loaded))

        if dask is None:
            results = run_sweep(loaded, jobs, keep)
        else:
            results = run_sweep_on_dask(loaded, dask, keep)

    _show_sweep(results, time.perf_counter() - begin)
    if plot is not None:
        draw_sweep(loaded, results, Path(plot))
    for target in (out, plot):
        if target is not None:
            print(target)


def _show_sweep(results: "list[Result]", seconds: float) -> None:
    """Print the spreads of the results, the most frequent other endings, and the speed."""
    from rich.console import Console
    from rich.table import Table

    from rfly_lab.runs.sweep import spreads

    console = Console(highlight=False, soft_wrap=True)
    table = Table("", "least", "median", "largest", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for spread in spreads(results):
        table.add_row(spread.name, *(f"{value:.6g}" for value in spread[1:]))
    console.print(table)

    missed = Counter(result.ending.split(" at ")[0] for result in results if not result.reached)
    for ending, count in missed.most_common(_MAX_ENDINGS):
        console.print(f"{count} × {ending}", markup=False)

    reached = sum(result.reached for result in results)
    simulated = sum(result.duration_s for result in results)
    console.print(
        f"end reached: {reached} of {len(results)} ({100 * reached / len(results):.1f} %)"
    )
    console.print(
        f"simulated {simulated:.1f} s in {seconds:.1f} s, {simulated / seconds:.1f} × real time"
    )


sim_app = typer.Typer(
    help="The land-air vehicle without ROS: scenarios on the ground and in the air; its URDF.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@dataclass(frozen=True)
class RunOptions:
    """Options of `rfly sim run`."""

    plot: Annotated[
        options.MaybeText,
        options.file_option("picture of track, heights, attitude, forces and power"),
    ] = None
    csv: Annotated[
        options.MaybeText,
        options.file_option("table of all samples, one row per 20 ms"),
    ] = None
    mcap: Annotated[
        options.MaybeText,
        options.file_option("ROS 2 messages in an MCAP file, for Foxglove and ros2 bag"),
    ] = None
    seed: Annotated[
        options.MaybeInt,
        options.optional("seed of the gusts (default: the scenario's)", min=0, max=4294967295),
    ] = None
    row: Annotated[
        options.MaybeInt,
        options.optional("SCENARIO is a table of a sweep: repeat the run of this number", min=0),
    ] = None
    fingerprint: Annotated[
        bool,
        typer.Option(
            "--hash",
            help="print a number for all that the run computed, bit by bit; it is the same for "
            "any number of threads and processes",
        ),
    ] = False
    estimate: Annotated[bool, typer.Option("--estimate", help=_ESTIMATE)] = False
    sensors: Annotated[
        options.MaybeText,
        options.optional(
            "with --estimate: shipped set or YAML file of the sensors (default: the set with the "
            "vehicle's name)",
            metavar="SET",
        ),
    ] = None
    estimator: Annotated[
        options.MaybeText,
        options.optional(
            "with --estimate: shipped set or YAML file of the estimator (default: the set with the "
            "name of the sensors, or of the vehicle)",
            metavar="SET",
        ),
    ] = None
    overwrite: options.Overwrite = False
    search_path: options.SearchPath = None

    def files(self) -> dict[str, str | None]:
        """Return the files to write, by option."""
        return {"--csv": self.csv, "--mcap": self.mcap, "--plot": self.plot}

    def check_files(self) -> None:
        """Raise what hinders the run from writing its files."""
        from rfly_lab.runs.mcap_log import check_mcap

        options.check_new_picture(self.plot, self.overwrite)
        options.check_target(self.csv, self.overwrite, *options.TABLE)
        options.check_target(self.mcap, self.overwrite, ".mcap")
        if self.mcap is not None:
            check_mcap()

    def aboard(self, vehicle: str) -> "tuple[SensorParameters, EstimatorParameters]":
        """Return sensors and estimator of the vehicle with that parameter set."""
        from rfly_amphibious.sensors.sensor_parameters import SensorParameters
        from rfly_autonomy.estimation.estimator_parameters import (
            EstimatorParameters,
            shipped_estimator_sets,
        )

        of_sensors = self.sensors if self.sensors in shipped_estimator_sets() else vehicle
        return (
            SensorParameters.for_vehicle(vehicle, self.sensors or ""),
            EstimatorParameters.for_vehicle(of_sensors, self.estimator or ""),
        )


@sim_app.command()
@options.takes(RunOptions)
def run(
    scenario: _Scenario,
    given: RunOptions,
) -> None:
    """Run a scenario and print its events; exit code 1 if its end condition is not reached.

    Examples:

        rfly sim run valley --plot valley.png

        rfly sim run hop --estimate --seed 3

        rfly sim run my_scenario.yaml --seed 3 --csv samples.csv --mcap run.mcap

        rfly sim run wind.csv --row 17 --plot run_17.png
    """
    from rfly_amphibious.scenarios.scenario import Scenario
    from rfly_amphibious.warm_up import warm_up
    from rfly_lab.runs.closed_loop import run_closed_loop
    from rfly_lab.runs.closed_loop import warm_up as warm_up_closed_loop
    from rfly_lab.runs.run import run_scenario
    from rfly_lab.runs.sweep import TableRow, read_row, result_of

    given.check_files()
    estimate = given.estimate
    changes: tuple[Change, ...] = ()
    of_table: TableRow | None = None
    if given.row is None and scenario.lower().endswith(".csv"):
        raise ConfigError(f"{scenario}: choose a run of this table of a sweep with --row")
    if given.row is not None:
        of_table = read_row(Path(scenario), given.row)
        scenario = of_table.scenario
        changes = of_table.changes
        estimate = estimate or of_table.estimate
    if not estimate and (given.sensors or given.estimator):
        raise typer.BadParameter("--sensors and --estimator are for --estimate")
    loaded = Scenario.load(scenario, given.search_path or (), changes)
    if given.seed is not None:
        loaded = loaded.with_seed(given.seed)
    compile_first(["amphibious"])
    with options.status("loading the model"):
        warm_up()
        if estimate:
            aboard = given.aboard(loaded.params.name)
            warm_up_closed_loop(loaded, *aboard)

    with progress_bar(loaded.name) as bar:
        begin = time.perf_counter()
        if estimate:
            closed = run_closed_loop(
                loaded,
                *aboard,
                lambda seconds: bar(seconds / loaded.end_time),
                keep_ticks=given.mcap is not None,
            )
            done = closed.run
        else:
            closed = None
            done = run_scenario(loaded, lambda seconds: bar(seconds / loaded.end_time))
        seconds = time.perf_counter() - begin

    _show(done, seconds, closed)
    is_repeated = given.seed is given.sensors is given.estimator is None
    if of_table is not None and is_repeated and estimate == of_table.estimate:
        result = result_of(done, closed.rms_error()[0] if closed else math.nan)
        _tell_differences(of_table.differences(result))
    if given.fingerprint:
        print(f"hash {(closed or done).fingerprint()}")
    _write(done, given.files(), closed)
    if not done.reached:
        print(f"rfly: {done.ending}", file=sys.stderr)
        raise typer.Exit(1)


def _tell_differences(names: list[str]) -> None:
    """Warn that a repeated run did not come out as its row of a table says."""
    if not names:
        return
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    print(
        f"rfly: this run is not as its row says ({shown}): the scenario, its files or this "
        "package have changed since the sweep",
        file=sys.stderr,
    )


def _write(
    done: "ScenarioRun", targets: dict[str, str | None], closed: "ClosedLoopRun | None"
) -> None:
    """Write the files that are wanted, then print their names."""
    from rfly_lab.runs.mcap_log import write_mcap
    from rfly_lab.runs.plot import draw_run
    from rfly_lab.runs.table_log import write_csv

    writers = {
        "--csv": write_csv,
        "--mcap": lambda run, path: write_mcap(closed or run, path),
        "--plot": draw_run,
    }
    wanted = {option: target for option, target in targets.items() if target is not None}
    for option, target in wanted.items():
        with options.status(f"writing {target}"):
            writers[option](done, Path(target))
    for target in wanted.values():
        print(target)


def _show(done: "ScenarioRun", seconds: float, closed: "ClosedLoopRun | None" = None) -> None:
    """Print notes, events and totals of a run."""
    from rich.console import Console
    from rich.table import Table

    scenario = done.scenario
    console = Console(highlight=False, soft_wrap=True)

    for text in scenario.notes:
        console.print(f"note: {text}", markup=False)
    events = [(when, mode.value, "") for when, mode in done.modes]
    events += [(when, "", text) for when, text in done.log]
    for touchdown in done.touchdowns:
        text = (
            f"touches down, sinking {touchdown.sink_speed:.2f} m/s, "
            f"{touchdown.level_speed:.2f} m/s across the ground"
        )
        events.append((touchdown.time, "", text))

    happened = Table("time s", "mode", "what", box=None)
    for when, mode, text in sorted(events, key=lambda event: event[0]):
        happened.add_row(f"{when:.2f}", mode, text)
    console.print(happened)

    # totals
    driven, flown = done.distances()
    where = "level ground" if scenario.terrain is None else scenario.terrain.name
    total = Table(show_header=False, box=None)
    total.add_row("scenario", f"{scenario.name}: {scenario.params.name} over {where}")
    total.add_row("driven, flown", f"{driven:.1f} m, {flown:.1f} m")
    total.add_row(
        "energy at the shafts",
        f"{(done.rotor_energy + done.wheel_energy) / 1000:.2f} kJ: "
        f"rotors {done.rotor_energy / 1000:.2f} kJ, wheels {done.wheel_energy / 1000:.2f} kJ",
    )
    battery = f"{done.battery_energy / 1000:.2f} kJ"
    if done.lowest_voltage > 0.0:
        battery += f", {100.0 * done.charge:.1f} % left, {done.lowest_voltage:.1f} V at least"
    total.add_row("energy from the battery", battery)
    if closed is not None:
        level, upright = closed.rms_error()
        text = (
            f"off by {level:.2f} m across the ground, {upright:.2f} m upright (root mean squares), "
            f"{closed.largest_error():.2f} m at most"
        )
        total.add_row("estimated position", text if closed.has_estimates else "none")
    total.add_row(
        "simulated",
        f"{done.duration:.2f} s in {seconds:.2f} s, {done.duration / seconds:.1f} × real time",
    )
    total.add_row("end", done.ending)
    console.print(total)


def fault(
    part: Annotated[
        str,
        typer.Argument(
            metavar="PART",
            help="a sensor, such as gps; rotor_1 …, drive_fl …, brake_fl …, steering, battery or "
            "battery_gauge",
        ),
    ],
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="off, stuck, biased, noisy, slow, delayed, intermittent, wrong, partial; mend "
            "ends the part's faults",
        ),
    ],
    value: Annotated[
        str,
        typer.Option(metavar="N[,N…]", help="in SI units, one number or one for each component"),
    ] = "",
    quantity: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="reading that is biased, noisy or wrong, such as rates (default: the first)",
        ),
    ] = "",
    duration: Annotated[
        float,
        typer.Option(min=0.0, metavar="S", help="simulation time; 0: until it is mended"),
    ] = 0.0,
    namespace: Annotated[
        str, typer.Option(help="namespace of amphibious_sim_node")
    ] = "amphibious_1",
) -> None:
    """Break a part of the vehicle that runs under `rfly up amphibious`, or mend it.

    Examples:

        rfly sim fault gps biased --value 3,-2,0 --duration 20

        rfly sim fault rotor_2 partial --value 0.7

        rfly sim fault rotor_2 mend
    """
    try:
        numbers = [float(number) for number in value.split(",")] if value else []
    except ValueError:
        raise typer.BadParameter(f"--value {value}: expected numbers, such as 3,-2,0") from None

    with options.needs_ros("asking a running amphibious_sim_node"):
        from rfly_bringup.ros.bridge_client import FaultClient

    with FaultClient(namespace) as client:
        client.inject(part, kind, quantity, numbers, duration)
    print(printable(f"{part}: {'mended' if kind == 'mend' else kind}"))


sim_app.command()(sweep)
sim_app.command()(replay)
sim_app.command()(fault)
sim_app.command()(faults)
sim_app.command()(fit)
sim_app.command()(modes)


@sim_app.command()
def urdf(
    vehicle: Annotated[str, typer.Argument(**_VEHICLE)] = "scale",
    out: Annotated[
        options.MaybePath,
        options.file_option("file to write; by default stdout", "--output", "--out", "-o"),
    ] = None,
    prefix: Annotated[
        str, typer.Option(help="prefix of the names of all links, such as car/")
    ] = "",
    mesh: Annotated[
        options.MaybeTexts,
        options.optional(
            "a mesh instead of boxes, for body, wheel or rotor; repeatable",
            metavar="PART=FILE",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write the vehicle as a URDF: joints, masses and inertia from its parameters.

    Examples:

        rfly sim urdf > scale.urdf

        rfly sim urdf full --output car.urdf --prefix car/ --mesh body=package://my_car/body.dae
    """
    from rfly_amphibious.description.urdf import vehicle_urdf
    from rfly_amphibious.vehicle.parameters import VehicleParameters

    options.check_target(out, overwrite, ".urdf", ".xml")

    meshes = {}
    for text in mesh or ():
        part, is_given, file = text.partition("=")
        if not is_given:
            raise typer.BadParameter(
                f"--mesh {text}: expected PART=FILE, such as body=package://my_car/body.dae"
            )
        meshes[part] = file

    made = vehicle_urdf(VehicleParameters.load(vehicle), prefix, meshes)
    if out is None:
        sys.stdout.write(made)
        return
    write_text(out, made)
    print(out)


@sim_app.command("ardupilot-params")
def ardupilot_params(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="file to write, such as quad.parm")],
    vehicle: Annotated[str, typer.Option(**_VEHICLE)] = "scale_quad",
    sensors: _Sensors = "",
    firmware: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="copter, which flies the vehicle, or rover, which drives it"
        ),
    ] = "copter",
    overwrite: options.Overwrite = False,
) -> None:
    """Write ArduPilot SITL's parameters for the vehicle: frame, motor order, outputs, gains.

    Example:

        rfly sim ardupilot-params quad.parm
    """
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_mavlink.autopilots.ardupilot_parameters import ardupilot_parameters, parameter_text

    options.check_target(file, overwrite, ".parm", ".param", ".params")
    params = VehicleParameters.load(vehicle)
    found = ardupilot_parameters(
        params, SensorParameters.for_vehicle(params.name, sensors), firmware
    )
    write_text(file, parameter_text(found, vehicle, firmware))
    print(file)


@sim_app.command("px4-params")
def px4_params(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="file to write, such as quad.px4")],
    vehicle: Annotated[str, typer.Option(**_VEHICLE)] = "scale_quad",
    sensors: _Sensors = "",
    overwrite: options.Overwrite = False,
) -> None:
    """Write PX4 SITL's parameters for the vehicle: rotors, outputs, gains, estimator.

    The file is for the shell from which PX4 is started.

    Example:

        rfly sim px4-params quad.px4 --vehicle scale_quad
    """
    from rfly_amphibious.sensors.sensor_parameters import SensorParameters
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_mavlink.autopilots.px4_parameters import parameter_text, px4_parameters

    options.check_target(file, overwrite, ".px4", ".params")
    params = VehicleParameters.load(vehicle)
    aboard = SensorParameters.for_vehicle(params.name, sensors)
    text = parameter_text(px4_parameters(params, aboard), vehicle, aboard.name)
    write_text(file, text)
    print(file)
