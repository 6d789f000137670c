# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mistyped commands: one line that helps and exit code 2, before anything is started."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rfly_bringup.cli.main import main
from rfly_common.files import encoded_picture
from rfly_common.imports import how_to_install


@pytest.fixture
def rfly(monkeypatch, capsys, tmp_path):
    """Runs the command in an empty folder; (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rfly", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return end.value.code, out, err

    return run


@pytest.mark.parametrize("arguments", [(), ("terrain",)])
def test_no_arguments_show_the_help_and_nothing_else(rfly, arguments):
    code, out, err = rfly(*arguments)
    assert code in (0, 2)  # 0 up to click 8.1
    assert "Usage" in out + err
    assert "rfly:" not in out + err


@pytest.mark.parametrize("words", [(), ("plan",), ("terrain", "query"), ("up", "amphibious")])
def test_the_short_help_is_the_help(rfly, words):
    shown = [rfly(*words, option) for option in ("-h", "--help")]
    assert shown[0] == shown[1]
    assert shown[0][0] == 0
    assert "Usage: rfly" in shown[0][1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nonsense",), "No such command 'nonsense'. rfly has drive, view, status, "),
        (("terrain", "altitude"), "No such command 'altitude'. rfly terrain has info, query, "),
        (("terrain", "inffo"), "No such command 'inffo'. Did you mean 'info'? rfly terrain has "),
        (("sim", "urdf", "--vehicle"), "option: --vehicle; write it alone: rfly sim urdf SET"),
        (("mission", "start", "--file", "x.plan"), "write it alone: rfly mission start NAME FILE"),
        (("terrain", "query", "120,-35"), "finite number of metres; a space parts X and Y"),
        (("terrain", "plot", "--out", "no/a.png"), "no/a.png: there is no folder /"),
        (("terrain", "plot", "--out", ".", "--overwrite"), ".: a folder, expected the name of a"),
        (("fleet", "check", "--fleet", "x"), "--fleet; write it alone: rfly fleet check FILE"),
        (("fleet", "check", "--or", "x"), "option: --or; rfly fleet check --help lists them"),
        (("up", "amphibious", "--policy", "no/hover.onnx"), "shipped one: hop, hover, "),
        (("up", "--map", "Jacksborofault"), "JacksboroFault"),
        (("up", "--fleet", "demo"), "demo_convoy"),
        (("up", "--fleet", "broken.yaml"), "broken.yaml:2: not valid YAML"),
        (("up", "--windows", "x"), "windows: 'x' is not a whole number"),
        (("up", "--frame-id", "enu"), "frame_id: 'enu', expected one of map, map_ned"),
        (("up", "--params-file", "/no/such.yaml"), "there is no file '/no/such.yaml'"),
        (("up", "extra"), "extra"),
        (("up", "--no-trajectory"), "No such option: --no-trajectory (Possible options: --nodes)"),
        (("up", "--flet", "x"), "No such option: --flet (Possible options: --fleet)"),
        (("up", "--zzz"), "No such option: --zzz; rfly up --help lists them"),
        (("up", "--nodes", "window"), "nodes: there is no node 'window'"),
        (("up", "--shard", "2/2"), "shard: '2/2', expected i/n with i from 0 to n - 1"),
        (("up", "--area", "0,0,x,1"), "area: '0,0,x,1' is not a list of numbers"),
        (("up", "--area", "0,0,0,1"), "area: [0, 0, 0, 1], expected x0, y0, x1, y1 in m"),
        (("up", "--area", "0,0,1,1", "--shard", "0/2"), "does not go with shard: 0/2"),
        (("up", "--guarded-robots", "a,a"), "guarded_robots: 'a' is named twice"),
        (("up", "--guarded-robots", "a,b c"), "guarded_robots: 'b c' is no name of a vehicle"),
        (("up", "--guarded-robots", "robot_defaults"), "'robot_defaults' is not free"),
        (("up", "--mission-vehicles", "a,1"), "mission_vehicles: '1' is no name of a vehicle"),
        (("up", "--mission-vehicles", "x," * 100 + "x"), "mission_vehicles: 101, at most 100"),
        (("up", "--goal-vehicle", "a,b"), "goal_vehicle: 'a,b' is no name of a vehicle"),
        (("up", "--time-scale", "1e9"), "time_scale: 1000000000.0, expected a finite number of"),
        (("up", "--host", "no such host"), "host 'no such host': no IPv4 address for that name"),
        (("up", "--feedback-bind", "here"), "feedback_bind: 'here' is no IPv4 address"),
        (("up", "--planner", "--vehicle-classes", "/no.yaml"), "/no.yaml"),
        (("up", "--ue-sensors", __file__), "test_mistakes.py: no JSON"),
        (("up", "--record", "/no/run.mcap"), "record: /no/run.mcap: there is no folder /no"),
        (("up", "--record", __file__), "test_mistakes.py exists; choose another name"),
        (("up", "amphibious", "--host", "no such host"), "host 'no such host': no IPv4 address"),
        (("up", "amphibious", "--real-time-factor", "1e9"), "real_time_factor: 1000000000.0, exp"),
        (("terrain", "info", "Jacksborofault"), "JacksboroFault"),
        (
            ("terrain", "import", "Mine.png", "--out", "New"),
            "a map already, which `rfly terrain",
        ),
        (("terrain", "traversable", "--max-slope", "25deg"), "'25deg'"),
        (("terrain", "profile", "0", "0", "9", "9", "--out", "a.txt"), "not 'txt'"),
        (("fleet", "check", "mixed_fleet", "--out", "a.txt"), "not 'txt'"),
        (("fleet", "plot", "mixed_fleet", "--out", "a.txt"), "not 'txt'"),
        (("plan", "1", "2", "3", "4"), "; expected rfly plan [OPTIONS] "),
        (("plan", "1,2", "3,4", "--vehicel-class", "rover"), "; did you mean --vehicle-class?"),
        (("plan", "1,2", "3,4", "--map", "SEEN.BT"), "SEEN.BT: rfly plan reads no OctoMap; plann"),
        (("plan", "1,2", "3,4", "--map", "seen.bt"), "seen.bt: rfly plan reads no OctoMap; plann"),
        (("send", "RflyCameraPosAng", "0", "-20"), "a negative number stands after --: rfly send "),
        (("send", "--3d"), "No such option: --3d; rfly send --help lists them"),
        (("send", "-.5"), "a negative number stands after --: rfly send "),
        (("send", "--file", "no.txt"), "no.txt: cannot be read as text: No such file "),
        (("record", "a.mcap"), "a.mcap: expected a name that ends in .pcap; --mcap records ROS to"),
        (("record", "A.MCAP"), "A.MCAP: expected a name that ends in .pcap; --mcap records ROS to"),
        (("record", "--mcap", "a.pcap"), "a.pcap: expected a name that ends in .mcap"),
        (("record", "--recover", "a.mcap", "b.pcap"), "b.pcap: expected a name that ends in .mcap"),
        (("up", "--record", "a.PCAP"), "record: a.PCAP: expected a name that ends in .mcap"),
        (("dissector", "--out", "a.pcap"), "a.pcap: expected a name that ends in .lua"),
        (("terrain", "profile", "0", "0", "9", "9", "--save", "a.png"), "a name that ends in .csv"),
        (("terrain", "import", "a.npy", "--out", "b.tif"), "a name that ends in .png or .txt"),
        (("plan", "1,2", "3,4", "--csv", "a.png"), "a.png: expected a name that ends in .csv"),
        (("mission", "fly", "a.plan", "--csv", "b.plan"), "b.plan: expected a name that ends in ."),
        (("world", "make", "forest", "--out", "a.png"), "a name that ends in .yaml or .yml"),
        (("world", "import", "a.osm", "--map", "A", "--out", "a.osm"), "ends in .yaml or .yml"),
        (("fleet", "deconflict", "x", "--out", "x.csv"), "a name that ends in .yaml or .yml"),
        (("sim", "fit", "--excite", "a.mcap"), "a.mcap: expected a name that ends in .yaml"),
        (("sim", "fit", "a.mcap", "--out", "a.csv"), "a.csv: expected a name that ends in .yaml"),
        (("sim", "urdf", "--out", "a.yaml"), "a.yaml: expected a name that ends in .urdf or .xml"),
        (("sim", "px4-params", "a.parm"), "a.parm: expected a name that ends in .px4 or "),
        (("sim", "ardupilot-params", "a.px4"), "a name that ends in .parm or .param or .params"),
        (("record", "no/a.pcap"), "no/a.pcap: there is no folder /"),
        (("record", "."), ".: a folder, expected the name of a file"),
        (("sim", "faults", "--out", "no/a.csv"), "no/a.csv: there is no folder /"),
        (("sim", "run", "hop", "--row", "3"), "hop: No such file or directory; expected the table"),
        (("sim", "run", "sweep.csv"), "sweep.csv: choose a run of this table of a sweep with --ro"),
        (("sim", "run", "SWEEP.CSV"), "SWEEP.CSV: choose a run of this table of a sweep with --ro"),
        (("sim", "run", "hop", "--csv", "a.mcap"), "a.mcap: expected a name that ends in .csv"),
        (("sim", "run", "hop", "--csv", "a.pcap"), "a.pcap: expected a name that ends in .csv"),
        (("sim", "run", "hop", "--mcap", "a.csv"), "a.csv: expected a name that ends in .mcap"),
        (("up", "--imagery", "no.tif"), "imagery: no.tif: no such file"),
        (("up", "amphibious", "--imagery", "."), "imagery: .: cannot be read: Is a directory"),
        (("up", "--imagery", "broken.yaml"), "imagery: broken.yaml: cannot be read as a raster ("),
        (("up", "amphibious", "--imagery", "broken.yaml"), "broken.yaml: cannot be read as a rast"),
        (("up", "--imagery", "grey.png"), "name three points of it in grey.csv, with the columns"),
        (("sim", "run", "hop", "--sensors", "scale"), "--sensors and --estimator are for --estim"),
    ],
)
def test_a_mistake_is_one_line(rfly, arguments, told):
    Path("broken.yaml").write_text("version: 1\nvehicles: {\n", encoding="utf-8")
    Path("grey.png").write_bytes(encoded_picture("png", np.zeros((2, 2), np.uint8)))
    code, out, err = rfly(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("rfly: ")
    assert err.count("\n") == 1
    assert told in err


@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        (("terrain", "traversable"), "JacksboroFault-traversable.png"),
        (("terrain", "viewshed", "0", "0"), "JacksboroFault-viewshed.png"),
        (("world", "make", "forest"), "forest.yaml"),
        (("dissector", "--out", "a.lua"), "a.lua"),
        (("sim", "faults", "--out", "notes.txt", "--overwrite"), "notes.txt"),
    ],
)
def test_a_file_that_was_there_stays(rfly, arguments, file):
    """Neither a default name nor --overwrite with a wrong ending costs a file."""
    Path(file).write_text("mine", encoding="utf-8")
    code, out, err = rfly(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"rfly: {file}")
    assert Path(file).read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("terrain", "plot", "--out", "a.png"), "a.png: no permission to write in the folder /"),
        (("terrain", "traversable"), "Fault-traversable.png: no permission to write in the fo"),
        (("terrain", "import", "a.npy", "--out", "New"), "New.png: no permission to write in th"),
        (("sim", "run", "hop", "--csv", "a.csv"), "a.csv: no permission to write in the folder /"),
        (("sim", "faults", "--out", "a.csv"), "a.csv: no permission to write in the folder /"),
        (("record", "a.pcap"), "a.pcap: no permission to write in the folder /"),
        (("up", "--record", "a.mcap"), "record: a.mcap: no permission to write in the folder /"),
        (("up", "--record", "true"), "record: rfly_DATE_TIME.mcap: no permission to write in the"),
        (("record", "mine.pcap", "--overwrite"), "mine.pcap: a file without the permission to"),
    ],
)
def test_a_folder_that_may_not_be_written_is_named_before_the_work(
    rfly, monkeypatch, arguments, told
):
    Path("mine.pcap").write_bytes(b"")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    code, out, err = rfly(*arguments)
    assert (code, out) == (2, "")
    assert told in err


@pytest.mark.parametrize(
    ("arguments", "node"),
    [
        (("up", "--mavlink"), "mavlink_node"),
        (("up", "amphibious", "--mavlink"), "mavlink_node"),
        (("up", "amphibious", "--autopilot", "px4"), "mavlink_hil_node"),
    ],
)
def test_a_library_that_a_node_lacks_is_named_before_any_node_starts(
    rfly, monkeypatch, arguments, node
):
    monkeypatch.setitem(sys.modules, "pymavlink", None)
    code, out, err = rfly(*arguments)
    assert (code, out) == (2, "")
    assert err == f"rfly: {node} needs pymavlink; {how_to_install('mavlink')}\n"


@pytest.mark.ros
def test_a_folder_for_logs_that_can_not_be_made_is_named_in_one_line():
    """ROS makes it in the home folder, which a container may have read-only."""
    ended = subprocess.run(
        [sys.executable, "-c", "from rfly_bringup.cli.entry_point import rfly; rfly()", "doctor"],
        env={**os.environ, "ROS_LOG_DIR": "/proc/none"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith("rfly: failed to initialize logging: ")
    assert "/proc/none" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_a_word_of_any_length_leaves_the_line_short(rfly):
    """A long word is cut in its middle; the reason stands at the end of the line."""
    code, _, err = rfly("terrain", "info", "9" * 20_000)
    assert code == 2
    assert err.startswith("rfly: map '999")
    assert err.endswith("or set PSP_PATH to RflySim's folder.\n")
    assert len(err) < 1_100


def test_a_map_of_the_search_path_is_found(rfly, monkeypatch, tmp_path):
    """Correct arguments start the nodes with the map."""
    import rfly_bringup.runner.up as up_module
    from rfly_terrain.map_files.search import package_maps

    folder = tmp_path / "maps"
    folder.mkdir()
    for ending in ("png", "txt"):
        (folder / f"Mine.{ending}").write_bytes(
            (package_maps() / f"JacksboroFault.{ending}").read_bytes()
        )
    started = []

    class Started(Exception):
        pass

    def supervisor(processes, arguments, printer, lan):
        started.append(arguments)
        raise Started

    monkeypatch.setattr(up_module, "node_supervisor", supervisor)
    with pytest.raises(Started):
        up_module.up({"map": "Mine", "map_search_path": str(folder), "fleet": "ring_convoy"})
    assert started[0]["map"] == "Mine"
