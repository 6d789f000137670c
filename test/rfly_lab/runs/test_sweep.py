# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Sweeps: variations, refusals, the same results in every way of running, and their table."""

from __future__ import annotations

import csv
import math
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from host_harness import two_hosts
from scipy.spatial.transform import Rotation

from rfly_amphibious.scenarios.scenario import Scenario
from rfly_common.config.parameter_files import parse_key_path
from rfly_common.errors import ConfigError
from rfly_common.imports import how_to_install
from rfly_lab.runs.closed_loop import run_closed_loop
from rfly_lab.runs.run import run_scenario
from rfly_lab.runs.sweep import (
    FIELDS,
    MAX_RUNS,
    ResultTable,
    Sweep,
    Variation,
    check_table,
    read_row,
    result_of,
    run_sweep,
    run_sweep_on_dask,
    spreads,
)

TEXT = """version: 1
vehicle: scale
start: {heading_deg: 0}
wind: {mean_mps: [0, 1, 0], gust_sigma_mps: [2, 2, 0]}
method: semi_implicit_euler
mission: {drive_speed_mps: 2, items: [{mode: waypoint, position_m: [20, 0]}]}
end: {when: time, time_s: 0.6}
"""


@pytest.fixture
def scenario(tmp_path):
    path = tmp_path / "drive.yaml"
    path.write_text(TEXT, encoding="utf-8")
    return str(path)


def load(scenario, *variations):
    return Sweep.load(scenario, [Variation.parse(text) for text in variations])


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("seed=0:4", "seed", (0, 1, 2, 3)),
        ("seed=1,5,7:9", "seed", (1, 5, 7, 8)),
        ("wind.mean_mps[1]=-2,0.5", "wind.mean_mps[1]", (-2, 0.5)),
        ("end.time_s=0:1:0.25", "end.time_s", (0.0, 0.25, 0.5, 0.75)),
        ("end.time_s=0.1:0.4:0.1", "end.time_s", (0.1, 0.2, 0.3)),
        ("x=3:0:-1", "x", (3, 2, 1)),
        ("vehicle=scale, full", "vehicle", ("scale", "full")),
    ],
)
def test_what_a_variation_says(text, key, values):
    variation = Variation.parse(text)
    assert (variation.key, variation.values) == (key, values)
    assert [type(value) for value in variation.values] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("seed", "'seed': expected KEY=VALUE,VALUE,… or KEY=START:STOP"),
        ("seed=", "'seed=': expected KEY=VALUE"),
        ("seed=1,,2", "'seed=1,,2': a value between commas is missing"),
        ("seed=3:3", "'seed=3:3': 3:3 is empty"),
        ("seed=0:3:0", "'seed=0:3:0': 0:3:0 is empty"),
        ("seed=0:1e9", f"'seed=0:1e9': 1000000000 values, allowed: up to {MAX_RUNS}"),
        ("wind..mean=1", "'wind..mean' is no key path"),
        ("[0]=1", "'[0]' is no key path"),
        ("seed={a: 1}", "'seed={a: 1}': {a: 1} is no single value"),
    ],
)
def test_what_is_no_variation(text, expected):
    with pytest.raises(ConfigError) as error:
        Variation.parse(text)
    assert str(error.value).startswith(expected)


def test_key_paths():
    assert parse_key_path("mission.items[2].height_m") == ("mission", "items", 2, "height_m")
    assert parse_key_path("seed") == ("seed",)


def test_all_combinations_the_last_one_fastest(scenario):
    sweep = load(scenario, "seed=0:2", "wind.mean_mps[0]=0,3", "vehicle.mass.body_kg=19.2,25")
    expected = [(seed, wind, mass) for seed in (0, 1) for wind in (0, 3) for mass in (19.2, 25)]
    assert [tuple(values.values()) for values in sweep.combinations()] == expected
    for values, changed in zip(sweep.combinations(), sweep.scenarios, strict=True):
        assert changed.wind.seed == values["seed"]
        assert changed.wind.mean == (values["wind.mean_mps[0]"], 1, 0)
        assert changed.params.mass_body == values["vehicle.mass.body_kg"]
        assert changed.params.mass_rotor_frame == 6.0
    assert len(sweep) == 8


def test_what_is_not_in_the_file_can_be_varied(tmp_path):
    """Changes reach keys that are left out, and components of a wind that the file does not have.

    Values shared by an alias stay.
    """
    sweep = load("hop", "wind.gust_sigma_mps[1]=0.5,1", "seed=3", "start.heading_deg=90")
    assert [s.wind.gust_sigma for s in sweep.scenarios] == [(0, 0.5, 0), (0, 1, 0)]
    expected = {((0, 0, 0), 3, math.pi / 2)}
    assert {(s.wind.mean, s.wind.seed, s.heading) for s in sweep.scenarios} == expected
    shared = TEXT.replace("mean_mps: [0, 1, 0]", "mean_mps: &w [0, 1, 0]").replace(
        "[2, 2, 0]", "*w"
    )
    (tmp_path / "shared.yaml").write_text(shared, encoding="utf-8")
    (changed,) = load(str(tmp_path / "shared.yaml"), "wind.mean_mps[1]=7").scenarios
    assert (changed.wind.mean, changed.wind.gust_sigma) == ((0, 7, 0), (0, 1, 0))


@pytest.mark.parametrize(
    ("variations", "expected"),
    [
        (["seed=0:2", "seed=5"], "seed and seed are varied both"),
        (["wind.mean_mps[0]=0", "wind=3"], "wind.mean_mps[0] and wind are varied both"),
        (["seed=0:1000", "end.time_s=1:201"], "200000 runs, allowed: up to 100000"),
        (["sede=1"], r"with sede=1: {file}:1: sede: unknown key; did you mean seed? allowed: "),
        (["seed=1,-1"], "with seed=-1: {file}:1: seed: -1, allowed: 0 … 4294967295"),
        (
            ["seed=2", "wind.mean_mps[3]=1"],
            "with seed=2, wind.mean_mps[3]=1: wind.mean_mps[3]: wind.mean_mps has the",
        ),
        (
            ["mission.items[0].mode.x=1"],
            "with mission.items[0].mode.x=1: mission.items[0].mode.x: mission.items[0].mode ",
        ),
        (
            ["events[0].time_s=1"],
            "with events[0].time_s=1: events[0].time_s: events is not in the file",
        ),
        (
            ["vehicle=lorry"],
            "with vehicle=lorry: {file}:2: vehicle: vehicle parameters 'lorry': no such file",
        ),
        (
            ["vehicle.mass.body_kg=-1"],
            "with vehicle.mass.body_kg=-1: {file}:2: vehicle: scale.yaml:4: mass.body_kg: -1",
        ),
        (
            ["end.time_s=0.05"],
            "with end.time_s=0.05: {file}:7: end.time_s: 0.05, allowed: 0.1 … 3600",
        ),
    ],
)
def test_a_combination_that_can_not_be_is_named_before_anything_runs(
    variations, expected, scenario
):
    with pytest.raises(ConfigError) as error:
        load(scenario, *variations)
    assert str(error.value).startswith(expected.format(file=scenario))


def test_which_vehicle_and_its_parameters_go_together(scenario):
    sweep = load(scenario, "vehicle=scale,scale_quad", "vehicle.brake.max_torque_nm=10,20")
    expected = [
        ("scale", 10),
        ("scale", 20),
        ("scale_quad", 10),
        ("scale_quad", 20),
    ]
    assert [(s.params.name, s.params.max_brake_torque) for s in sweep.scenarios] == expected


@pytest.mark.exhaustive
def test_one_process_two_and_a_cluster_give_the_same_results_in_order(scenario):
    sweep = load(scenario, "seed=0:3", "vehicle.mass.body_kg=19.2,25")
    reported: list[tuple[int, str]] = []
    alone = run_sweep(sweep, 1, lambda run, result: reported.append((run, repr(result))))
    assert reported == list(enumerate(map(repr, alone)))
    by_hand = [result_of(run_scenario(s)) for s in sweep.scenarios]
    assert [result.end_x_m for result in alone] == [result.end_x_m for result in by_hand]
    assert len({result.end_x_m for result in alone}) == 6
    main = sys.modules["__main__"]
    reported.clear()
    spread = run_sweep(sweep, 2, lambda run, result: reported.append((run, repr(result))))
    assert sys.modules["__main__"] is main
    assert sorted(reported) == list(enumerate(map(repr, alone)))
    assert list(map(repr, spread)) == list(map(repr, alone))


@pytest.mark.needs("distributed")
def test_a_dask_cluster_gives_the_same_results_in_order(scenario):
    import distributed

    text = TEXT.replace("vehicle: scale", "map: JacksboroFault\nvehicle: scale").replace(
        "heading_deg: 0", "position_m: [-963, -435]"
    )
    with open(scenario, "w", encoding="utf-8") as file:
        file.write(text.replace("[20, 0]", "[-950, -435]"))
    sweep = load(scenario, "seed=0:3")
    assert len(sweep.terrains) == 1, "one map for all runs"

    reported: list[tuple[int, str]] = []
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            protocol="tcp",
        ) as cluster,
    ):
        of_cluster = run_sweep_on_dask(
            sweep,
            cluster.scheduler_address,
            lambda run, result: reported.append((run, repr(result))),
        )
        with distributed.Client(cluster) as client:
            again = run_sweep_on_dask(sweep, client)

    alone = run_sweep(sweep, 1)
    assert sorted(reported) == list(enumerate(map(repr, alone)))
    assert len({result.end_y_m for result in alone}) == 3
    assert list(map(repr, of_cluster)) == list(map(repr, again)) == list(map(repr, alone))


CLIENT = """
import itertools
import sys
from rfly_lab.runs.sweep import Sweep, Variation, run_sweep_on_dask
sweep = Sweep.load(sys.argv[1], [Variation.parse("seed=0:16")])
count = itertools.count(1)
for result in run_sweep_on_dask(
    sweep, sys.argv[2], lambda run, result: print(next(count), flush=True)
):
    print(repr(result))
"""


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.needs("distributed")
def test_a_host_of_the_cluster_that_is_lost_loses_no_result(scenario, record_property):
    """A scheduler, and a worker on each of two hosts, run a sweep.

    After a quarter of the runs one of the hosts is killed.
    """
    with open(scenario, "w", encoding="utf-8") as file:
        file.write(TEXT.replace("time_s: 0.6", "time_s: 3.0"))
    with ExitStack() as stack:
        _, (first, second), kept_apart = stack.enter_context(two_hosts([0, 0]))
        record_property("hosts", kept_apart)

        def start(*command, prefix):
            process = subprocess.Popen(
                [*prefix, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            stack.callback(process.communicate)
            stack.callback(process.kill)
            return process

        # a scheduler
        scheduler = start(
            *(
                sys.executable,
                "-m",
                "distributed.cli.dask_scheduler",
                "--no-dashboard",
                "--port",
                "0",
            ),
            prefix=first.viewer_prefix,
        )
        port = re.search(
            r"tcp://\S+:(\d+)", next(line for line in scheduler.stderr if "Scheduler at" in line)
        )[1]

        # a worker on each host
        workers = [
            start(
                *(
                    sys.executable,
                    "-m",
                    "distributed.cli.dask_worker",
                    f"tcp://{host.viewer}:{port}",
                ),
                *("--no-nanny", "--no-dashboard", "--nthreads", "1"),
                prefix=host.prefix,
            )
            for host in (first, second)
        ]
        for worker in workers:
            assert any("Registered to" in line for line in worker.stderr)

        # the client, and the loss of a host
        client = start(
            *(sys.executable, "-c", CLIENT, scenario, f"tcp://{first.viewer}:{port}"),
            prefix=first.viewer_prefix,
        )
        for line in client.stdout:
            if line == "4\n":
                workers[1].kill()
            if line == "16\n":
                break
        results = client.stdout.read().splitlines()
        scheduler.kill()
        assert re.search(
            rf"Remove worker addr: tcp://{re.escape(second.address)}:", scheduler.stderr.read()
        )

    assert results == list(map(repr, run_sweep(load(scenario, "seed=0:16"))))


@pytest.mark.needs("distributed")
def test_a_cluster_that_is_not_there_is_named(scenario, monkeypatch):
    with pytest.raises(ConfigError, match=r"'nonsense', expected the address of a scheduler"):
        run_sweep_on_dask(load(scenario, "seed=0"), "nonsense")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match=rf"distributed; {re.escape(how_to_install('sweep'))}$"):
        run_sweep_on_dask(load(scenario, "seed=0"), "tcp://127.0.0.1:1")


@pytest.mark.needs("distributed")
def test_a_cluster_without_workers_is_waited_for_or_named(scenario, monkeypatch):
    """Workers may come later on level ground; a map needs one that holds it."""
    import distributed

    monkeypatch.setattr("rfly_common.threads.processes.CONNECT_TIMEOUT", 0.5)
    level = load(scenario, "seed=0:2")
    with open(scenario, "w", encoding="utf-8") as file:
        file.write(
            TEXT.replace("vehicle:", "map: JacksboroFault\nvehicle:").replace(
                "heading_deg: 0", "position_m: [-963, -435]"
            )
        )
    on_map = load(scenario, "seed=0:2")
    with distributed.LocalCluster(
        n_workers=0, processes=False, dashboard_address=None, protocol="tcp"
    ) as cluster:
        with pytest.raises(ConfigError, match=r"^Dask: tcp://.*: it has no workers, expected one$"):
            run_sweep_on_dask(on_map, cluster.scheduler_address)
        with distributed.Client(cluster) as client, ThreadPoolExecutor(1) as pool:
            results = pool.submit(run_sweep_on_dask, level, client)
            while not cluster.scheduler.tasks and not results.done():
                time.sleep(0.01)
            cluster.scale(1)
            assert list(map(repr, results.result())) == list(map(repr, run_sweep(level, 1)))


@pytest.mark.needs("distributed")
def test_a_cluster_that_ends_meanwhile_is_named(scenario):
    import distributed

    sweep = load(scenario, "seed=0:40")
    cluster = distributed.LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        dashboard_address=None,
        protocol="tcp",
    )
    with cluster, pytest.raises(ConfigError, match=r"^Dask: .*: its workers were lost \(.*\)$"):
        run_sweep_on_dask(sweep, cluster.scheduler_address, lambda *_: cluster.close())


def test_results_are_those_of_the_run(scenario):
    """The result agrees with numbers worked out from the samples in other ways."""
    text = TEXT.replace(
        "{mode: waypoint, position_m: [20, 0]}", "{mode: takeoff, height_m: 1}, {mode: land}"
    )
    run = run_scenario(
        Scenario.parse(text.replace("when: time, time_s: 0.6", "time_s: 30").encode(), "s.yaml")
    )

    result = result_of(run)
    assert (result.reached, result.crashed, result.ending, result.duration_s) == (
        True,
        False,
        run.ending,
        run.duration,
    )

    assert result.energy_j == run.rotor_energy + run.wheel_energy
    expected = (1, run.touchdowns[0].sink_speed)
    assert (result.touchdowns, result.touchdown_sink_mps) == expected
    expected = np.linalg.norm(np.diff(run.position, axis=0), axis=1).sum()
    assert result.driven_m + result.flown_m == pytest.approx(expected)

    upward = Rotation.from_quat(np.roll(run.x[:, 6:10], -1, axis=1)).apply((0.0, 0.0, 1.0))
    tilt = np.degrees(np.arctan2(np.hypot(upward[:, 0], upward[:, 1]), upward[:, 2]))
    assert result.largest_tilt_deg == pytest.approx(tilt.max(), abs=1e-6)
    assert result.largest_clearance_m == pytest.approx(1.0, abs=0.35)
    expected = tuple(run.final.position.tolist())
    assert (result.end_x_m, result.end_y_m, result.end_z_m) == expected


def test_a_table_holds_one_row_a_run(scenario, tmp_path):
    sweep = load(scenario, "vehicle=scale,scale_quad", "end.time_s=0.2,1")
    results = run_sweep(sweep, 1)
    results[3] = replace(results[3], reached=False, ending='crashed, "badly"')
    path = tmp_path / "table.csv"
    with ResultTable(sweep, path) as table:
        for run in (2, 0, 3, 1):
            table.add(run, results[run])
        lines = path.read_text(encoding="utf-8").splitlines()  # as a kill would leave it
        assert [line.split(",")[0] for line in lines] == ["run", "2", "0", "3", "1"]

    with (tmp_path / "table.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert [row["run"] for row in rows] == ["0", "1", "2", "3"]
    assert {(row["scenario"], row["estimate"]) for row in rows} == {(scenario, "False")}
    assert [(row["vehicle"], row["end.time_s"]) for row in rows] == [
        ("scale", "0.2"),
        ("scale", "1"),
        ("scale_quad", "0.2"),
        ("scale_quad", "1"),
    ]
    assert (rows[3]["ending"], rows[3]["reached"], rows[0]["reached"]) == (
        'crashed, "badly"',
        "False",
        "True",
    )

    ends = [result.end_x_m for result in results]
    assert [float(row["end_x_m"]) for row in rows] == pytest.approx(ends, rel=1e-8)
    by_name = {spread.name: spread[1:] for spread in spreads(results)}
    assert by_name["duration_s"] == pytest.approx((0.2, 0.6, 1.0))

    assert "touchdown_sink_mps" not in by_name, "no run touched down"
    for ending in (".xlsx", ".parquet", ".npz"):
        with pytest.raises(ConfigError, match=rf"table\{ending}: .* as \.csv, not '\{ending}'"):
            check_table(tmp_path / f"table{ending}")


@pytest.mark.parametrize("estimate", [False, True])
def test_a_row_of_a_table_repeats_its_run_bit_by_bit(scenario, tmp_path, estimate):
    """0.1 + 0.2 has 17 digits; a seed is a whole number."""
    variations = [Variation.parse("seed=4,5"), Variation.parse("vehicle=scale,full")]
    wind = Variation("wind.mean_mps[0]", ("wind", "mean_mps", 0), (0.1 + 0.2,))
    duration = Variation.parse("end.time_s=1.5" if estimate else "end.time_s=0.6")
    sweep = Sweep.load(scenario, [*variations, wind, duration], estimate=estimate)
    with ResultTable(sweep, tmp_path / "table.csv") as table:
        results = run_sweep(sweep, 1, table.add)

    row = read_row(tmp_path / "table.csv", 2)
    assert (row.scenario, row.estimate) == (scenario, estimate)
    again = Scenario.load(row.scenario, changes=row.changes)
    assert (again.wind.seed, again.params.name, again.wind.mean[0]) == (5, "scale", 0.1 + 0.2)
    run = run_closed_loop(again).run if estimate else run_scenario(again)
    assert repr(result_of(run, results[2].estimate_error_m)) == repr(results[2])
    assert math.isfinite(results[2].estimate_error_m) is estimate

    # the row's own result, and others
    assert row.differences(results[2]) == []
    assert row.differences(replace(results[2], energy_j=1.0, crashed=True)) == [
        "crashed",
        "energy_j",
    ]


@pytest.mark.parametrize(
    ("text", "run", "expected"),
    [
        (b"", 0, ":1: no table of rfly sim sweep, which begins with run,scenario,estimate"),
        (b"run,seed,reached\n0,1,True\n", 0, ":1: no table of rfly sim sweep, which begins"),
        (b"run,scenario,estimate,seed\n0,hop,False,1\n1,ho", 1, ": no run 1 among its 2 rows"),
        (b"run,scenario,estimate\n0,hop,False\n", 7, ": no run 7 among its 1 rows"),
        (b"run,scenario,estimate\n0,hop,True\n0,hop,False\n", 0, ": 2 rows of run 0: expected"),
        (b"run,scenario,estimate\n0,hop,yes\n", 0, ": run 0: estimate: 'yes', expected True or"),
        (b"run,\xff", 0, ": no table of rfly sim sweep: 'utf-8' codec can't decode"),
    ],
)
def test_a_row_that_is_not_there_is_named(tmp_path, text, run, expected):
    path = tmp_path / "table.csv"
    path.write_bytes(text)
    with pytest.raises(ConfigError) as error:
        read_row(path, run)
    assert str(error.value).startswith(f"{path}{expected}")


def test_a_row_of_a_table_that_a_spreadsheet_has_saved(tmp_path):
    """Excel's "CSV UTF-8" begins with a mark, ends lines with CR LF and has TRUE for True."""
    path = tmp_path / "table.csv"
    header = "run,scenario,estimate,vehicle.lifts," + ",".join(FIELDS)
    cells = ["TRUE" if name == "reached" else "1" for name in FIELDS]
    text = f"{header}\r\n0,hop,TRUE,FALSE,{','.join(cells)}\r\n"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    row = read_row(path, 0)
    assert (row.scenario, row.estimate) == ("hop", True)
    assert row.changes == ((("vehicle", "lifts"), False),)
    assert row.fields[FIELDS.index("reached")] == "True"


@pytest.mark.needs("matplotlib")
def test_a_sweep_is_drawn_a_point_a_run(scenario, tmp_path):
    """Two variations by three results, each with four points, red ones have not reached it."""
    from matplotlib.figure import Figure

    from rfly_lab.runs.plot import draw_sweep

    sweep = load(scenario, "vehicle=scale,scale_quad", "end.time_s=0.2,1")
    results = run_sweep(sweep, 1)
    results[3] = replace(results[3], reached=False)
    drawn = []
    keep = Figure.savefig
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Figure, "savefig", lambda self, *a, **k: (drawn.append(self), keep(self, *a, **k))
        )
        draw_sweep(sweep, results, tmp_path / "sweep.png")

    (figure,) = drawn
    points = [axes.collections[0] for axes in figure.axes]
    assert [len(each.get_offsets()) for each in points] == [4] * 6
    assert points[3].get_offsets().tolist() == [
        [time, pytest.approx(time)] for time in (0.2, 1, 0.2, 1)
    ]
    red, green = points[0].get_facecolors()[[3, 0]]
    assert red[0] > red[1]
    assert green[1] > green[0]
    assert (tmp_path / "sweep.png").stat().st_size > 1000
