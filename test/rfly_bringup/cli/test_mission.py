# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly mission` as a user meets it: what it prints and writes, and one line with exit code 2 for
each mistake.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from rfly_bringup.cli.main import main
from rfly_common.geodesy import DEFAULT_GEO_ORIGIN, ned_to_geodetic
from rfly_missions.mission.files import read_mission
from rfly_terrain.height_map.height_map import HeightMap


def place(north, east):
    return ned_to_geodetic((north, east, 0.0), DEFAULT_GEO_ORIGIN)[:2].tolist()


def simple(command, frame, params):
    return {"type": "SimpleItem", "command": command, "frame": frame, "params": params}


ORIGIN = ("--geo-origin", *DEFAULT_GEO_ORIGIN)
ITEMS = [
    simple(22, 3, [0, 0, 0, None, *place(0, 0), 15]),
    simple(178, 2, [1, 12, -1, 0, 0, 0, 0]),
    simple(16, 3, [0, 3, 0, None, *place(60, 80), 20]),
    simple(203, 2, [0, 0, 0, 0, 1, 0, 0]),
    simple(21, 3, [0, 0, 0, None, *place(40, 20), 0]),
]


@pytest.fixture
def plan(tmp_path):
    """Writes a plan of these items, and returns its path."""

    def write(*items, **changes):
        mission = {
            "plannedHomePosition": list(DEFAULT_GEO_ORIGIN),
            "items": list(items),
            "version": 2,
        }
        path = tmp_path / "some.plan"
        path.write_text(
            json.dumps({"fileType": "Plan", "version": 1, "mission": mission, **changes})
        )
        return path

    return write


@pytest.fixture
def rfly(monkeypatch, capsys):
    """Runs the command; (exit code, stdout, stderr)."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["rfly", "mission", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        streams = capsys.readouterr()
        return end.value.code, streams.out, streams.err

    return run


def test_check_lists_items_and_what_is_not_flown(rfly, plan):
    code, out, _ = rfly("check", plan(*ITEMS, simple(23, 3, [0, 0, 0, 0, *place(0, 9), 5])))
    assert code == 0
    assert "6 items about home 47.3977420, 8.5455940, 488 m" in out
    assert "WAYPOINT              60.00    80.00   20.00  nan, 3, 0, 0" in out
    assert "CUSTOM (MAVLink 178)" in out
    assert "note: item 4 (command 203): params[4] = 1 has no place in CUSTOM" in out
    assert "note: item 6 (command 23) is not carried out; it ends when is_mode_done says so" in out


def test_check_refuses_what_leaves_the_fence(rfly, plan):
    fence = {
        "circles": [{"circle": {"center": place(0, 0), "radius": 70}, "inclusion": True}],
        "version": 2,
    }
    code, _, err = rfly("check", plan(*ITEMS, geoFence=fence))
    assert code == 2
    assert err.startswith("rfly: mission item 2 (WAYPOINT), or the way to it, breaches area 1")


def test_convert_writes_the_other_format_once(rfly, plan, tmp_path):
    target = tmp_path / "some.waypoints"
    code, out, _ = rfly("convert", plan(*ITEMS), target)
    assert (code, out.splitlines()[-1]) == (0, f"{target}: 5 items")
    for a, b in zip(
        read_mission(target).items, read_mission(tmp_path / "some.plan").items, strict=True
    ):
        assert a.mode is b.mode
        np.testing.assert_allclose(a.position, b.position, atol=1e-6)
    code, _, err = rfly("convert", plan(*ITEMS), target)
    assert (code, err) == (2, f"rfly: {target} exists; choose another name or add --overwrite\n")
    assert rfly("convert", plan(*ITEMS), target, "--overwrite")[0] == 0


def test_convert_takes_what_lies_above_terrain_from_a_map(rfly, plan, tmp_path):
    """30 m above the ground 60 m north and 80 m east of home, which is the map's origin."""
    target = tmp_path / "some.waypoints"
    above_terrain = simple(16, 10, [0, 3, 0, None, *place(60, 80), 30])
    assert rfly("convert", plan(above_terrain), target)[0] == 2
    assert rfly("convert", plan(above_terrain), target, "--map", "JacksboroFault", *ORIGIN)[0] == 0
    down = -(HeightMap.load("JacksboroFault").altitude(80.0, 60.0) + 30.0)
    np.testing.assert_allclose(
        read_mission(target).items[0].position, (60.0, 80.0, down), atol=1e-3
    )


@pytest.mark.parametrize("uav_type", ["multirotor", "fixed-wing"])
def test_fly_over_a_map_to_the_end(rfly, plan, tmp_path, uav_type):
    """The track begins and ends on the ground, and every item is reported."""
    track = tmp_path / "track.csv"
    code, out, _ = rfly(
        "fly",
        plan(*ITEMS),
        "--map",
        "JacksboroFault",
        *ORIGIN,
        "--uav-type",
        uav_type,
        "--csv",
        track,
    )
    assert code == 0, out
    assert ("flown higher than the mission says" in out) == (uav_type == "fixed-wing")
    assert [line.split()[4] for line in out.splitlines() if " s  item " in line] == [
        "TAKEOFF",
        "CUSTOM",
        "WAYPOINT",
        "CUSTOM",
        "LAND",
    ]
    assert "finished, lowest " in out.splitlines()[-2]
    assert out.splitlines()[-1] == str(track)

    rows = np.loadtxt(track, delimiter=",", skiprows=1)
    height = rows[:, 3] - HeightMap.load("JacksboroFault").altitude(rows[:, 1], rows[:, 2])
    assert height.min() >= -1e-3
    assert height[[0, -1]] == pytest.approx([0.0, 0.0], abs=0.4)
    assert np.hypot(rows[-1, 1] - 20, rows[-1, 2] - 40) <= 1.01


@pytest.mark.needs("matplotlib")
def test_fly_draws_the_track(rfly, plan, tmp_path):
    """The panel of the map shows the track from (0, 0) to the end 20 m east, 40 m north.

    The corner is 80 m east, 60 m north. The panel is a little larger than 100 m, so blue extends as
    far to the right as upwards.
    """
    import cv2

    picture = tmp_path / "flight.png"
    assert rfly("fly", plan(*ITEMS), "--plot", picture)[0] == 0
    pixels = cv2.imread(str(picture)).astype(int)
    blue = np.abs(pixels - [180, 119, 31]).sum(axis=2) < 60  # C0 is #1f77b4; OpenCV has blue first
    rows, columns = np.nonzero(blue[:, : pixels.shape[1] // 2])
    assert np.ptp(columns) / np.ptp(rows) == pytest.approx(80 / 60, rel=0.1)
    assert columns[rows.argmin()] > columns[rows.argmax()] + 100, (
        "the corner is the northmost, the start the southmost"
    )
    red = (
        np.abs(pixels - [40, 39, 214]).sum(axis=2) < 60
    )  # C3: the end, 20 m east of 80, 40 m north of 60
    (row,), (column,) = (
        [round(float(each.mean()))] for each in np.nonzero(red[:, : pixels.shape[1] // 2])
    )
    assert (column - columns.min()) / np.ptp(columns) == pytest.approx(20 / 80, abs=0.08)
    assert (rows.max() - row) / np.ptp(rows) == pytest.approx(40 / 60, abs=0.08)
    assert rfly("fly", plan(*ITEMS), "--plot", picture)[0] == 2, "it exists"
    code, _, err = rfly("fly", plan(*ITEMS), "--plot", tmp_path / "flight.doc")
    assert code == 2
    assert "pictures can be written as" in err


def test_fly_tells_of_a_mission_without_an_end(rfly, plan):
    code, out, _ = rfly(
        "fly", plan(ITEMS[0], simple(177, 2, [1, -1, 0, 0, 0, 0, 0])), "--limit", 60
    )
    assert code == 1
    assert out.splitlines()[-1].endswith("not finished within the --limit of 60 s")


def test_fly_ends_with_the_return_after_a_breach(rfly, plan, tmp_path):
    """A wing turns beyond a way-point that lies 5 m within the fence; then it circles at home."""
    fence = {"circles": [{"circle": {"center": place(0, 0), "radius": 165.0}}], "version": 2}
    there = simple(16, 3, [0, 3, 0, None, *place(160, 0), 20])
    back = simple(16, 3, [0, 3, 0, None, *place(0, 0), 20])
    file = plan(ITEMS[0], there, back, ITEMS[-1], geoFence=fence)
    track = tmp_path / "track.csv"

    code, out, _ = rfly("fly", file, "--uav-type", "fixed-wing", "--csv", track)
    assert code == 1
    assert (
        "not finished: area 1 of the fence (inclusion circle) was breached, returned"
        in out.splitlines()[-2]
    )
    rows = np.loadtxt(track, delimiter=",", skiprows=1)
    assert 165.0 < np.hypot(rows[:, 1], rows[:, 2]).max() < 250.0
    assert np.hypot(rows[-1, 1], rows[-1, 2]) <= 25.0


def test_fly_lands_a_return(rfly, plan, tmp_path):
    """Over a map whose ground lies 30 m below the plan's home, too."""
    track = tmp_path / "track.csv"
    for above, options in ((0, ()), (30, ("--map", "JacksboroFault", *ORIGIN))):
        home = [*place(0, 0), DEFAULT_GEO_ORIGIN[2] + above]
        mission = {"plannedHomePosition": home, "items": [*ITEMS[:3], simple(20, 2, [0] * 7)]}
        file = plan(mission=mission)
        assert rfly("fly", file, *options, "--csv", track, "--overwrite")[0] == 0
        z = np.loadtxt(track, delimiter=",", skiprows=1)[:, 3]
        assert z[-1] == pytest.approx(z[0], abs=0.4)


def test_check_of_many_items_stays_short(rfly, plan):
    """The first hundred, unless all are asked for."""
    many = [simple(16, 3, [0, 0, 0, None, *place(0, 0), 20 + i]) for i in range(150)]
    code, out, _ = rfly("check", plan(*many))
    assert (code, len(out.splitlines())) == (0, 103)
    assert "… and 50 more items; --all shows them" in out
    assert len(rfly("check", plan(*many), "--all")[1].splitlines()) == 152


def test_notes_of_what_lies_below_home_and_of_rally_points(rfly, plan):
    deep = simple(16, 0, [0, 0, 0, None, *place(60, 80), 88])
    code, out, _ = rfly(
        "check", plan(*ITEMS, deep, rallyPoints={"points": [[*place(9, 8), 20]], "version": 2})
    )
    assert code == 0
    assert "note: item 5 lies below home, item 5 by 400.0 m: without a map" in out
    assert "rally point 9.00 north, 8.00 east, 20.00 up" in out
    code, out, _ = rfly("fly", plan(ITEMS[0], deep, ITEMS[-1]))
    assert code == 0
    assert "item 1 by 400.0 m: without a map the ground is taken as level" in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("check", "no.plan"), "rfly: no.plan: No such file or directory"),
        (("check", "some.plan", "--map", "NoSuchMap"), "NoSuchMap"),
        (
            ("convert", "some.plan", "x.txt"),
            "rfly: x.txt: extension '.txt', expected .plan or .waypoints",
        ),
        (
            ("fly", "some.plan", "--uav-type", "ground"),
            "mission item 0: TAKEOFF, which a ground vehicle can't do",
        ),
        (("fly", "some.plan", "--csv", "no/track.csv"), "no/track.csv: there is no folder"),
        (("fly", "some.plan", "--loiter-radius", "nan"), "--loiter-radius"),
    ],
)
def test_mistakes_are_one_line(rfly, plan, monkeypatch, arguments, text):
    monkeypatch.chdir(plan(*ITEMS).parent)
    code, _, err = rfly(*arguments)
    assert code == 2
    assert err.count("\n") == 1
    assert text in err


def test_what_nobody_would_say_done_is_refused_and_a_car_drives(rfly, plan, tmp_path):
    """A gripper's navigation command never ends by itself; a car's way lies on the ground, notes on
    stderr.
    """
    code, out, err = rfly("fly", plan(ITEMS[0], simple(94, 3, [0, 0, 0, 0, *place(9, 9), 5])))
    assert (code, out) == (2, "")
    assert "item 2 (command 94) is not carried out" in err

    track = tmp_path / "track.csv"
    code, out, err = rfly(
        "fly",
        plan(*ITEMS[1:4]),
        "--map",
        "JacksboroFault",
        *ORIGIN,
        "--uav-type",
        "ground",
        "--csv",
        track,
    )
    assert code == 0
    assert out.splitlines()[-2].endswith("s  finished")
    assert err == "note: item 3 (command 203): params[4] = 1 has no place in CUSTOM\n"

    rows = np.loadtxt(track, delimiter=",", skiprows=1)
    height = rows[:, 3] - HeightMap.load("JacksboroFault").altitude(rows[:, 1], rows[:, 2])
    assert height.min() >= -1e-3
    assert height.max() < 0.1
    assert np.hypot(rows[-1, 1] - 80, rows[-1, 2] - 60) <= 3.1

    code, _, err = rfly("fly", plan(*ITEMS), "--csv", track)
    assert (code, err) == (2, f"rfly: {track} exists; choose another name or add --overwrite\n")


def test_a_mission_on_another_continent_is_told(rfly, tmp_path):
    (tmp_path / "far.waypoints").write_text(
        "QGC WPL 110\n0 1 0 16 0 0 0 0 -35.0 149.0 580 1\n1 0 3 22 0 0 0 0 -35 149 9 1\n"
    )
    code, _, err = rfly("fly", tmp_path / "far.waypoints", "--map", "JacksboroFault")
    assert code == 2
    assert "lies off the map 'JacksboroFault'" in err


def test_preflight_names_item_and_place_and_repairs(rfly, plan, tmp_path):
    """Over a real map: a way-point 5 m above the ground is named with its place; the plan that is
    written is clear.
    """
    terrain = HeightMap.load("JacksboroFault")
    above = [
        float(terrain.altitude(e, n)) - float(terrain.altitude(0, 0))
        for n, e in ((0, 0), (60, 80), (40, 20))
    ]
    home = [*DEFAULT_GEO_ORIGIN[:2], DEFAULT_GEO_ORIGIN[2] + float(terrain.altitude(0, 0))]
    items = [
        simple(22, 3, [0, 0, 0, None, *place(0, 0), 60]),
        simple(16, 3, [0, 3, 0, None, *place(60, 80), above[1] + 5]),
        simple(21, 3, [0, 0, 0, None, *place(40, 20), 0]),
    ]
    file = plan(mission={"plannedHomePosition": home, "items": items, "version": 2})
    where = ("--map", "JacksboroFault", *ORIGIN)
    code, out, _ = rfly("preflight", file, *where)
    assert code == 1

    latitude = place(60, 80)[0]
    assert "item 1 (WAYPOINT): ground: " in out
    assert f"m over the ground, at {latitude:.4f}"[:-1] in out
    assert "return height   " in out

    target = tmp_path / "safe.plan"
    code, out, _ = rfly("preflight", file, *where, "--repair", target)
    assert f"{target}: " in out.splitlines()[0]
    assert "ground: " not in out
    assert "ground: " not in rfly("preflight", target, *where)[1]
    assert read_mission(target).items[1].position[2] < -above[1] - 9.99

    code, out, _ = rfly("preflight", target, *where, "--battery", 1, "--power", 300)
    assert code == 1
    assert "battery: " in out
    assert " Wh\n" in out


def test_preflight_tells_how_high_a_fixed_wing_flies(rfly, plan):
    """30 m above home is too low for its climb over the map's hills; a car ignores heights."""
    terrain = HeightMap.load("JacksboroFault")
    sea = DEFAULT_GEO_ORIGIN[2] + float(terrain.altitude(0, 0))
    items = [
        simple(22, 3, [0, 0, 0, None, *place(0, 0), 30]),
        simple(16, 3, [0, 3, 0, None, *place(60, 80), 2000]),
    ]
    home = [*DEFAULT_GEO_ORIGIN[:2], sea]
    file = plan(mission={"plannedHomePosition": home, "items": items, "version": 2})
    where = ("preflight", file, "--map", "JacksboroFault", *ORIGIN, "--uav-type")

    notes = [line for line in rfly(*where, "fixed-wing")[1].splitlines() if "note: " in line]
    (words,) = [note.split() for note in notes]
    assert words[:7] == ["note:", "item", "0", "(TAKEOFF)", "is", "flown", "at"]
    assert float(words[7]) - float(words[11]) == pytest.approx(sea + 30.0, abs=0.11)
    assert float(words[11]) > 10.0
    assert "note: " not in rfly(*where, "multirotor")[1]
    high = rfly(*where, "multirotor", "--min-height", 50)[1]
    assert f"is flown at {sea + 50:.1f} m above sea, 20.0 m higher than it says" in high
    assert "note: " not in rfly(*where, "ground", "--min-height", 50)[1]


def test_a_mission_too_low_for_a_fixed_wing_is_flown_higher_or_refused(rfly, plan):
    """The map's hills demand more than 30 m of it: `climb` says so, `refuse` flies nothing."""
    terrain = HeightMap.load("JacksboroFault")
    home = [*DEFAULT_GEO_ORIGIN[:2], DEFAULT_GEO_ORIGIN[2] + float(terrain.altitude(0, 0))]
    items = [simple(22, 3, [0, 0, 0, None, *place(0, 0), 30])]
    file = plan(mission={"plannedHomePosition": home, "items": items, "version": 2})
    where = ("fly", file, "--map", "JacksboroFault", *ORIGIN, "--limit", 1)

    _, out, _ = rfly(*where, "--uav-type", "fixed-wing")
    assert "flown higher than the mission says" in out
    code, out, err = rfly(*where, "--uav-type", "fixed-wing", "--too-low", "refuse")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "mission item 0: TAKEOFF at " in err
    code, out, _ = rfly(*where, "--too-low", "refuse")
    assert code == 1  # the time limit
    assert "item 0: TAKEOFF from " in out


def test_items_off_the_map_are_named_by_check_preflight_and_fly(rfly, plan):
    terrain = HeightMap.load("JacksboroFault")
    home = [*DEFAULT_GEO_ORIGIN[:2], DEFAULT_GEO_ORIGIN[2] + float(terrain.altitude(0, 0))]
    x_max = terrain.bounds[1]
    items = [
        simple(22, 3, [0, 0, 0, None, *place(0, 0), 60]),
        simple(16, 3, [0, 3, 0, None, *place(0, x_max - 1.0), 60]),
        simple(16, 3, [0, 3, 0, None, *place(0, x_max + 70.0), 60]),
    ]
    file = plan(mission={"plannedHomePosition": home, "items": items, "version": 2})
    where = ("--map", "JacksboroFault", *ORIGIN)
    note = "item 2 (WAYPOINT) reaches 70.0 m beyond the map's east edge; "

    for command in (("check", file), ("preflight", file), ("fly", file, "--limit", 1)):
        out = rfly(*command, *where)[1]
        assert out.count(note) == out.count("beyond the map") == 1
    assert "beyond the map" not in rfly("check", file)[1]


def test_preflight_keeps_away_from_placed_objects(rfly, plan, tmp_path):
    """A mast of 50 m next to the way, in a list as rfly objects reads it; x east, y north."""
    (tmp_path / "mast.yaml").write_text(
        "version: 1\nobjects: [{type: 151, x: 40, y: 33, id: 7, size: [2, 2, 50]}]\n"
    )
    terrain = HeightMap.load("JacksboroFault")
    home = [*DEFAULT_GEO_ORIGIN[:2], DEFAULT_GEO_ORIGIN[2] + float(terrain.altitude(0, 0))]
    items = [
        simple(22, 3, [0, 0, 0, None, *place(0, 0), 30]),
        simple(16, 3, [0, 3, 0, None, *place(60, 80), 30]),
    ]
    file = plan(mission={"plannedHomePosition": home, "items": items, "version": 2})
    where = ("--map", "JacksboroFault", *ORIGIN, "--clearance", 5)
    assert "object: " not in rfly("preflight", file, *where)[1]

    code, out, _ = rfly("preflight", file, *where, "--objects", tmp_path / "mast.yaml")
    assert code == 1
    assert "item 1 (WAYPOINT): object: " in out
    assert "m from object 7 (type 151), at " in out


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "--map: missing"),
        (
            ("--map", "JacksboroFault", "--battery", "9"),
            "--battery and --power: expected both or neither",
        ),
        (("--map", "JacksboroFault", "--repair", "some.plan"), "some.plan exists"),
        (("--map", "JacksboroFault", *ORIGIN, "--objects", "none.yaml"), "none.yaml"),
        (("--map", "JacksboroFault", "--clearance", "nan"), "--clearance"),
    ],
)
def test_mistakes_of_a_preflight_are_one_line(rfly, plan, monkeypatch, arguments, text):
    monkeypatch.chdir(plan(*ITEMS).parent)
    code, _, err = rfly("preflight", "some.plan", *arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert text in err
