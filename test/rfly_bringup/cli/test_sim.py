# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sim run`: exit codes, messages, and files."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import cv2
import numpy as np
import pytest
from node_harness import PATIENCE, wait_until

from rfly_bringup.cli.main import main
from rfly_common.imports import how_to_install

SHORT = """version: 1
vehicle: scale
method: semi_implicit_euler
mission: {items: [{mode: waypoint, position_m: [3, 0]}]}
end: {time_s: 20}
"""


@pytest.fixture
def scenario(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.yaml").write_text(SHORT, encoding="utf-8")
    return tmp_path / "short.yaml"


def rfly(monkeypatch, capsys, *words, command="run"):
    monkeypatch.setattr(sys, "argv", ["rfly", "sim", command, *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    out = capsys.readouterr()
    return int(end.value.code or 0), out.out, out.err


def test_a_run_is_told_drawn_and_written(scenario, monkeypatch, capsys):
    code, out, err = rfly(
        monkeypatch,
        capsys,
        scenario,
        "--plot",
        "run.png",
        "--csv",
        "run.csv",
        "--seed",
        "2",
    )
    assert (code, err) == (0, "")
    assert "DRIVE" in out
    assert "mission done at" in out

    driven = float(out.split("driven, flown")[1].split("m,")[0])
    assert driven == pytest.approx(3.0, abs=0.4)
    assert cv2.imread("run.png").std() > 10.0

    lines = (scenario.parent / "run.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("mode,time_s,position_x_m,")
    assert float(lines[-1].split(",")[2]) == pytest.approx(3.0, abs=0.4)

    code, _, err = rfly(monkeypatch, capsys, scenario, "--csv", "run.csv")
    assert (code, err) == (2, "rfly: run.csv exists; choose another name or add --overwrite\n")


@pytest.mark.exhaustive
@pytest.mark.slow
def test_the_hash_of_a_run_is_the_same_for_any_number_of_threads(scenario, monkeypatch, capsys):
    """Another process with three threads computes the same run bit by bit.

    The loop is closed by estimates, so that sensors and filter are part of it.
    """
    scenario.write_text(SHORT.replace("time_s: 20", "when: time, time_s: 1.5"), encoding="utf-8")
    words = ["sim", "run", str(scenario), "--estimate", "--hash"]
    code, out, _ = rfly(monkeypatch, capsys, *words[2:])
    (number,) = re.findall("^hash ([0-9a-f]{16})$", out, re.MULTILINE)

    threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "3")
    done = subprocess.run(
        [sys.executable, "-c", "from rfly_bringup.cli.main import main; main()", *words],
        env=os.environ | threads,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (code, done.returncode) == (0, 0), done.stderr
    assert f"\nhash {number}\n" in done.stdout


@pytest.mark.needs("mcap", "mcap_ros2")
def test_a_log_is_written_next_to_the_table(scenario, monkeypatch, capsys):
    from mcap import reader

    code, out, err = rfly(monkeypatch, capsys, scenario, "--csv", "run.csv", "--mcap", "run.mcap")
    assert (code, err) == (0, "")
    assert out.endswith("run.csv\nrun.mcap\n")
    last = Path("run.csv").read_text(encoding="utf-8").splitlines()[-1].split(",")
    with open("run.mcap", "rb") as file:
        statistics = reader.make_reader(file).get_summary().statistics
    assert statistics.message_end_time == round(float(last[1]) * 1e9)
    code, _, err = rfly(monkeypatch, capsys, scenario, "--mcap", "run.mcap")
    assert (code, err) == (2, "rfly: run.mcap exists; choose another name or add --overwrite\n")


def test_a_missing_library_is_reported_before_the_run(scenario, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcap_ros2", None)
    code, out, err = rfly(monkeypatch, capsys, scenario, "--mcap", "run.log")
    assert (code, out) == (2, "")
    assert f"files needs mcap-ros2-support; {how_to_install('log')}\n" in err
    assert err.count("\n") == 1


def test_what_is_not_reached_is_exit_code_1_and_one_line(scenario, monkeypatch, capsys):
    scenario.write_text(SHORT.replace("time_s: 20", "time_s: 1"), encoding="utf-8")
    code, out, err = rfly(monkeypatch, capsys, scenario)
    assert (code, err) == (1, "rfly: not reached: mission_done; time is up at 1.00 s\n")
    assert "driven, flown" in out


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("nothing.yaml",),
            "rfly: scenario 'nothing.yaml': no such file, and no shipped set of this name (hills, ",
        ),
        (("short.yaml", "--plot", "run.docx"), "rfly: run.docx: pictures can be written as "),
        (
            ("short.yaml", "--csv", "run.parquet"),
            "rfly: run.parquet: expected a name that ends in .csv\n",
        ),
        (
            ("short.yaml", "--mcap", "run.npz"),
            "rfly: run.npz: expected a name that ends in .mcap\n",
        ),
        (("short.yaml", "--csv", "no/run.csv"), "rfly: no/run.csv: there is no folder "),
        (
            ("bad.yaml",),
            "rfly: bad.yaml:4: mission.items[0].mode: 'swim', allowed: waypoint, takeoff, land\n",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words, expected, scenario, monkeypatch, capsys):
    (scenario.parent / "bad.yaml").write_text(
        SHORT.replace("mode: waypoint", "mode: swim"), encoding="utf-8"
    )
    code, out, err = rfly(monkeypatch, capsys, *words)
    assert (code, out) == (2, "")
    assert err.startswith(expected)
    assert err.count("\n") == 1


def test_a_sweep_is_summed_up_and_written(scenario, monkeypatch, capsys):
    words = (
        scenario,
        "--vary",
        "end.time_s=1,20",
        "--vary",
        "vehicle.mass.body_kg=18:20",
        "--jobs",
        "1",
    )
    code, out, err = rfly(monkeypatch, capsys, *words, "--out", "table.csv", command="sweep")
    assert code == 0
    progress = [line for line in err.splitlines() if " runs: " in line]  # a slow machine shows it
    assert err.splitlines() == progress
    assert "2 × not reached: mission_done; time is up\n" in out
    assert "end reached: 2 of 4 (50.0 %)\n" in out
    least, _, largest = out.split("duration_s")[1].split()[:3]
    assert float(least) == 1.0 < float(largest) < 20.0
    lines = (scenario.parent / "table.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("run,scenario,estimate,end.time_s,vehicle.mass.body_kg,reached,")
    assert [line.split(",")[3:6] for line in lines[1:]] == [
        ["1", "18", "False"],
        ["1", "19", "False"],
        ["20", "18", "True"],
        ["20", "19", "True"],
    ]

    # one of them again
    code, out, _ = rfly(monkeypatch, capsys, "table.csv", "--row", "1")
    assert code == 1
    assert re.search(r"simulated +1\.00 s", out)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ("--vary", "sede=0:3"),
            "rfly: with sede=0: short.yaml:1: sede: unknown key; did you mean seed? ",
        ),
        (("--vary", "seed"), "rfly: 'seed': expected KEY=VALUE,VALUE,… or KEY=START:STOP\n"),
        (
            ("--out", "table.xlsx"),
            "rfly: table.xlsx: tables can be written as .csv, not '.xlsx'\n",
        ),
        (
            ("--out", "table.parquet"),
            "rfly: table.parquet: tables can be written as .csv, not '.parquet'\n",
        ),
        (("--out", "no/table.csv"), "rfly: no/table.csv: there is no folder "),
        (
            ("--out", "short.csv"),
            "rfly: short.csv exists; choose another name or add --overwrite\n",
        ),
        (
            ("--jobs", "2", "--dask", "tcp://127.0.0.1:1"),
            "rfly: --jobs and --dask: expected one; a cluster's workers set",
        ),
    ],
)
def test_a_mistake_of_a_sweep_is_one_line_and_exit_code_2(
    words, expected, scenario, monkeypatch, capsys
):
    (scenario.parent / "short.csv").touch()
    code, out, err = rfly(monkeypatch, capsys, "short.yaml", *words, command="sweep")
    assert (code, out) == (2, "")
    assert err.startswith(expected)
    assert err.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.exhaustive
@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_sweep_that_is_ended_leaves_no_process(number, code, scenario):
    """Ctrl-C without a trace or a warning."""
    words = ("sim", "sweep", "short.yaml", "--vary", "seed=0:500", "--jobs", "2", "--out", "t.csv")
    table = scenario.parent / "t.csv"
    command = [sys.executable, "-c", "from rfly_bringup.cli.entry_point import rfly; rfly()"]
    with subprocess.Popen(
        [*command, *words],
        cwd=scenario.parent,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as parent:
        children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")

        def workers() -> list[Path]:
            found = [Path("/proc") / child for child in children.read_text().split()]
            return [each for each in found if b"spawn_main" in (each / "cmdline").read_bytes()]

        # workers that still compile kernels take longer to end than the command waits
        wait_until(lambda: table.exists() and table.read_bytes().count(b"\n") > 2, "two rows")
        left = workers()
        assert len(left) == 2
        parent.send_signal(number)
        _, said = parent.communicate(timeout=PATIENCE)
    wait_until(lambda: not any(each.exists() for each in left), "the end of the workers")
    assert parent.returncode == code
    if number == signal.SIGINT:
        assert b"leaked" not in said
        assert b"Traceback" not in said


@pytest.mark.needs("distributed")
def test_a_sweep_without_dask_or_its_scheduler_says_so(scenario, monkeypatch, capsys):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{nobody.getsockname()[1]}"
        monkeypatch.setattr("rfly_common.threads.processes.CONNECT_TIMEOUT", 0.2)
        code, _, err = rfly(monkeypatch, capsys, scenario, "--dask", address, command="sweep")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"rfly: Dask: {address}: no scheduler answers (")
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = rfly(monkeypatch, capsys, scenario, "--dask", address, command="sweep")
    install = how_to_install("sweep")
    assert (code, err) == (2, f"rfly: a Dask cluster needs distributed; {install}\n")


def test_a_run_by_estimates_tells_their_error(scenario, monkeypatch, capsys):
    code, out, err = rfly(
        monkeypatch, capsys, scenario, "--estimate", "--seed", "1", "--csv", "run.csv"
    )
    assert (code, err) == (0, "")
    assert "DISARMED" in out
    found = re.search(
        r"estimated position +off by ([\d.]+) m across the ground, ([\d.]+) m upright", out
    )
    assert 0.5 < float(found[1]) < 6.0
    assert float(found[2]) < 0.5
    rows = (scenario.parent / "run.csv").read_text(encoding="utf-8").splitlines()
    start, end = (np.array(rows[k].split(",")[2:4], float) for k in (1, -1))
    assert np.linalg.norm(end - start) > 1.0
    assert np.linalg.norm(end - (3.0, 0.0)) > 0.5, "by the estimate it is at (3, 0), not in truth"


def test_sensors_and_estimator_of_files_of_ones_own(scenario, monkeypatch, capsys):
    """A file of sensors without GPS: the estimate begins at the world's origin, where it starts."""
    text = (files("rfly_amphibious") / "data/sensors/scale.yaml").read_text(encoding="utf-8")
    without_gps = re.sub(r"(?ms)^gps:.*?(?=^magnetometer)", "", text)
    (scenario.parent / "my.yaml").write_text(without_gps, encoding="utf-8")
    estimator = (files("rfly_autonomy") / "data/estimators/scale.yaml").read_text(encoding="utf-8")
    (scenario.parent / "est.yaml").write_text(estimator, encoding="utf-8")

    words = (scenario, "--estimate", "--sensors", "my.yaml")
    code, out, err = rfly(monkeypatch, capsys, *words)
    assert (code, err) == (0, "")
    off = float(re.search(r"estimated position +off by ([\d.]+) m across", out)[1])
    assert off < 0.3, "wheels alone, from the true place: no drift of a GPS"

    code, with_estimator, err = rfly(monkeypatch, capsys, *words, "--estimator", "est.yaml")
    assert (code, err) == (0, "")
    assert f"off by {off:.2f} m across" in with_estimator, "the same weights, from a file"


@pytest.mark.filterwarnings("error")
def test_a_gps_that_is_silent_from_the_start_is_named(scenario, monkeypatch, capsys):
    silent = SHORT.replace("time_s: 20", "time_s: 7") + "events: [{time_s: 0, sensor_off: gps}]\n"
    scenario.write_text(silent, encoding="utf-8")
    code, out, err = rfly(monkeypatch, capsys, scenario, "--estimate")
    assert code == 1
    assert re.search(r"5\.00 +no estimate yet: it waits for gps", out)
    assert re.search(r"estimated position +none", out)
    assert "nan" not in out + err
