# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly fleet check`, `deconflict` and `plot`: exit codes, messages, files and pictures."""

from __future__ import annotations

import contextlib
import sys

import cv2
import numpy as np
import pytest

from rfly_bringup.cli.main import main

GOOD = """version: 1
min_separation: 5
vehicles:
  - id: 1
    type: 3
    speed: 10
    shape: {type: circle, center: [-300, -50], radius: 100}
    limits: {turn_radius: 90}
"""


def rfly(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["rfly", "fleet", *words])
    with pytest.raises(SystemExit) as end:
        main()
    out = capsys.readouterr()
    return int(end.value.code or 0), out.out, out.err


def test_check_tells_what_a_vehicle_does(tmp_path, monkeypatch, capsys):
    path = tmp_path / "fleet.yaml"
    path.write_text(GOOD, encoding="utf-8")
    code, out, _ = rfly(monkeypatch, capsys, "check", str(path))
    assert code == 0, out

    row = next(line.split() for line in out.splitlines() if "vehicle_1" in line)
    assert row[:8] == [
        "vehicle_1",
        "1",
        "ground",
        "628.3",
        "62.8",
        "10.00",
        "100.0",
        "1.00",
    ]
    assert "nothing is wrong" in out


def test_check_shows_the_gap_under_wheels(tmp_path, monkeypatch, capsys):
    """Slopes change by about 0.05 from one cell of the map to the next: over a car's track that is
    some centimetres.
    """
    path = tmp_path / "fleet.yaml"
    path.write_text(
        GOOD + "    wheelbase: 2.8\n    track: 1.6\n    altitude: {agl: 0.3}\n",
        encoding="utf-8",
    )
    code, out, _ = rfly(monkeypatch, capsys, "check", str(path))
    assert code == 0, out
    gap = float(next(line.split() for line in out.splitlines() if "vehicle_1" in line)[-1])
    assert 0.02 < gap < 0.08
    assert (
        f"vehicle 'vehicle_1': not all of its wheels can touch: one is up to {gap:.3f} m above "
        "the ground at x -" in out
    )


CROSSING = """version: 1
defaults: {kind: ground, type: 50, speed: {cruise: 10}}
vehicles:
  - {name: east, id: 1, shape: {type: line, from: [-100, 0], to: [100, 0]}}
  - {name: north, id: 2, shape: {type: line, from: [0, -100], to: [0, 100]}}
"""


def test_check_finds_vehicles_that_meet_and_bends_that_no_car_takes(tmp_path, monkeypatch, capsys):
    """Neither the file's separation nor its limits are needed: 30² / 10 is 90 m/s² sideways."""
    path = tmp_path / "fleet.yaml"
    path.write_text(CROSSING, encoding="utf-8")
    code, out, _ = rfly(monkeypatch, capsys, "check", str(path))
    assert code == 1
    meeting = "meets 'north' after 10.0 s at x 0.0, y 0.0; their bodies meet below 1.96 m"
    assert f"vehicle 'east': {meeting}" in out
    assert "1 finding" in out

    path.write_text(CROSSING.replace("[0, -100], to: [0, 100]", "[9, -100], to: [9, 90]"), "utf-8")
    assert rfly(monkeypatch, capsys, "check", str(path))[0] == 0

    bend = GOOD.replace("radius: 100}", "radius: 10}").replace("speed: 10", "speed: 30")
    path.write_text(bend.replace("    limits: {turn_radius: 90}\n", ""), encoding="utf-8")
    code, out, _ = rfly(monkeypatch, capsys, "check", str(path))
    assert code == 1
    assert "it takes up to 8.0 m/s² sideways, but gets 90 m/s² at x " in out


def test_check_names_file_line_key_vehicle_and_place(tmp_path, monkeypatch, capsys):
    path = tmp_path / "fleet.yaml"
    path.write_text(GOOD.replace("turn_radius: 90", "turn_radius: 110"), encoding="utf-8")
    code, out, _ = rfly(monkeypatch, capsys, "check", str(path))
    assert code == 1
    assert (
        f"{path}:8: vehicles[0].limits.turn_radius: vehicle 'vehicle_1': it can't turn tighter "
        "than 110" in out
    )
    assert "at x -" in out


def test_check_draws_what_it_finds(tmp_path, monkeypatch, capsys):
    """A line that leaves the map gets a red cross where it does, at its right end in the picture's
    map.
    """
    path = tmp_path / "fleet.yaml"
    out = tmp_path / "check.png"
    line = "{type: line, from: [2800, 0], to: [3020, 0]}"
    path.write_text(
        f"version: 1\nvehicles: [{{id: 1, type: 3, speed: 10, shape: {line}}}]\n",
        encoding="utf-8",
    )
    code, told, _ = rfly(monkeypatch, capsys, "check", str(path), "--out", str(out))
    assert code == 1
    assert told.endswith(f"\n1 finding\n{out}\n")

    picture = cv2.imread(str(out)).astype(int)[:690, :800]  # without the legend at the bottom
    red = np.nonzero(np.abs(picture - [0, 0, 255]).sum(axis=2) < 60)
    blue = np.nonzero(np.abs(picture - [180, 119, 31]).sum(axis=2) < 60)
    assert 8 < np.ptp(red[0]) < 20
    assert np.mean(red[0]) == pytest.approx(np.median(blue[0]), abs=3)
    assert np.mean(red[1]) > np.quantile(blue[1], 0.95)
    assert rfly(monkeypatch, capsys, "check", str(path), "--out", str(out))[0] == 2


def test_a_broken_file_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys):
    path = tmp_path / "fleet.yaml"
    path.write_text(GOOD.replace("radius: 100", "radius: -1"), encoding="utf-8")
    for command in (
        ["check"],
        ["plot", "--out", str(tmp_path / "a.png")],
        ["deconflict", "--out", str(tmp_path / "b.yaml")],
    ):
        code, _, err = rfly(monkeypatch, capsys, *command, str(path))
        assert code == 2
        assert err.count("\n") == 1
        assert "fleet.yaml:7: vehicles[0].shape.radius: -1" in err


TWO_CARS = """version: 1
min_separation: 3
vehicles:
  - {name: east, id: 1, type: 3, speed: 8, shape: {type: line, from: [-400, -50], to: [-200, -50]}}
  - {name: north, id: 2, type: 3, speed: 8, shape: {type: line, from: [-300, -150], to: [-300, 50]}}
"""


def test_deconflict_writes_a_fleet_with_which_nothing_is_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crossing.yaml").write_text(TWO_CARS, encoding="utf-8")
    assert rfly(monkeypatch, capsys, "check", "crossing.yaml")[0] == 1

    words = ("deconflict", "crossing.yaml", "--out", "clear.yaml")
    # with a cold cache it also says, as an error, that it compiles kernels
    code, printed, _ = rfly(monkeypatch, capsys, *words)
    assert (code, printed) == (0, "north: departs 1 s later\nclear.yaml\n")
    code, out, _ = rfly(monkeypatch, capsys, "check", "clear.yaml")
    assert (code, "nothing is wrong" in out) == (0, True)

    assert rfly(monkeypatch, capsys, *words)[::2] == (
        2,
        "rfly: clear.yaml exists; choose another name or add --overwrite\n",
    )
    code, out, _ = rfly(monkeypatch, capsys, "deconflict", "clear.yaml", "--out", "same.yaml")
    assert out.startswith("no vehicle comes too near to another: nothing is changed\n")


def test_deconflict_without_a_way_names_a_vehicle_and_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crossing.yaml").write_text(TWO_CARS, encoding="utf-8")
    nothing = ("--later", "0", "--slower", "1")
    code, out, err = rfly(
        monkeypatch, capsys, "deconflict", "crossing.yaml", "--out", "clear.yaml", *nothing
    )
    assert (code, err) == (1, "")
    assert out.startswith("no way for 'north' that keeps clear of the others; ")
    assert not (tmp_path / "clear.yaml").exists()


def test_a_large_fleet_is_refused_at_once_with_the_limit_named(tmp_path, monkeypatch, capsys):
    """Vehicles are counted before any of them is made, so the refusal takes no time."""
    file = tmp_path / "large.yaml"
    shape = "shape: {type: circle, center: [0, 0], radius: 50}"
    file.write_text(
        f"version: 1\nvehicles: [{{id: 1, type: 3, count: 100000, speed: 5, {shape}}}]\n",
        encoding="utf-8",
    )
    code, _, err = rfly(monkeypatch, capsys, "check", str(file))
    assert code == 2
    assert (
        "vehicles: 100000 vehicles with all copies, at most 2000 are allowed; raise "
        "--max-vehicles to check more" in err
    )

    file.write_text("#" * 1_000_001, encoding="utf-8")
    code, _, err = rfly(monkeypatch, capsys, "check", str(file))
    assert code == 2
    assert "larger than 1,000,000 bytes; raise --max-vehicles to check more" in err


def test_plot_draws_the_track_where_it_is(tmp_path, monkeypatch, capsys):
    """The track is where it should be in the map's panel.

    Blue (the first colour) lies above, below, left and right of the circle's middle.
    """
    path = tmp_path / "fleet.yaml"
    out = tmp_path / "fleet.png"
    path.write_text(GOOD, encoding="utf-8")
    assert rfly(monkeypatch, capsys, "plot", str(path), "--out", str(out))[0] == 0

    picture = cv2.imread(str(out)).astype(int)
    blue = np.abs(picture - [180, 119, 31]).sum(axis=2) < 60  # C0 is #1f77b4; OpenCV has blue first
    rows, columns = np.nonzero(blue[:, : picture.shape[1] // 2])
    assert np.ptp(rows) > 200
    assert np.ptp(rows) == pytest.approx(np.ptp(columns), rel=0.05)

    middle = blue[rows.min() + 30 : rows.max() - 30, (columns.min() + columns.max()) // 2]
    assert not middle.any()

    code, _, err = rfly(
        monkeypatch, capsys, "plot", str(path), "--out", str(tmp_path / "fleet.doc")
    )
    assert code == 2
    assert "pictures can be written as" in err


def test_no_line_hides_behind_another_and_the_legend_names_all(tmp_path, monkeypatch):
    """Three cars follow one circle, evenly spaced: its line has their three colours.

    So has the line of their speeds. An aircraft's ground, dotted, is in the legend.
    """
    from rfly_bringup.cli import track_plots
    from rfly_terrain import HeightMap
    from rfly_trajectory import load_fleet

    path = tmp_path / "fleet.yaml"
    circle = "shape: {type: circle, center: [0, 0], radius: 60}"
    path.write_text(
        "version: 1\nvehicles:\n"
        f"  - {{name: car, id: 1, type: 3, count: 3, spacing: even, speed: 5, {circle}}}\n"
        f"  - {{name: hawk, id: 9, type: 3, kind: multirotor, speed: 9, altitude: {{agl: 9}}, "
        "shape: {type: line, from: [-90, 0], to: [90, 0]}}\n",
        encoding="utf-8",
    )
    figures = []

    @contextlib.contextmanager
    def kept(*arguments):
        with picture(*arguments) as figure:
            figures.append(figure)
            yield figure

    picture = track_plots.picture
    monkeypatch.setattr(track_plots, "picture", kept)
    fleet = load_fleet(path).on_terrain(HeightMap.load("JacksboroFault"))
    track_plots.draw_fleet(fleet, tmp_path / "fleet.png")

    legends = [axes.get_legend() for axes in figures[0].axes if axes.get_legend()]
    names = [text.get_text() for text in legends[-1].get_texts()]
    assert names == ["car_1", "car_2", "car_3", "hawk", "ground below aircraft"]
    pixels = cv2.imread(str(tmp_path / "fleet.png")).astype(int)
    half = pixels.shape[1] // 2
    shares = [
        (np.abs(pixels[:, :half] - bgr).sum(axis=2) < 60).sum()
        for bgr in ([180, 119, 31], [14, 127, 255], [44, 160, 44])  # C0, C1, C2
    ]
    assert min(shares) > 0.7 * max(shares), "each has about a third of the circle"


def test_a_large_fleet_is_coloured_by_groups(tmp_path, monkeypatch, capsys):
    """12 cars on circles and 12 aircraft 150 m above others: two colours in the map, and profiles
    of both, in the panel of altitudes the aircraft's higher up.
    """
    from rfly_bringup.cli.track_plots import groups_of

    path = tmp_path / "fleet.yaml"
    out = tmp_path / "fleet.png"
    circles = (
        ("car", "ground", "", -300),
        ("hawk", "multirotor", "altitude: {agl: 150}, ", 300),
    )
    lines = [
        f"  - {{id: {number + 100 * offset}, name: {name}_{number + 1}, kind: {kind}, type: 3, "
        f"speed: 20, {altitude}"
        f"shape: {{type: circle, center: [{x}, -50], radius: {190 + number}}}}}\n"
        for offset, (name, kind, altitude, x) in enumerate(circles, 1)
        for number in range(12)
    ]
    path.write_text("version: 1\nvehicles:\n" + "".join(lines), encoding="utf-8")
    assert rfly(monkeypatch, capsys, "plot", str(path), "--out", str(out))[0] == 0
    picture = cv2.imread(str(out)).astype(int)
    half = picture.shape[1] // 2
    found = {}
    for name, bgr in (
        ("car", [180, 119, 31]),
        ("hawk", [14, 127, 255]),
    ):  # C0 #1f77b4, C1 #ff7f0e
        rows, columns = np.nonzero(np.abs(picture - bgr).sum(axis=2) < 60)
        below_the_legend = (columns > half) & (rows > 60)
        found[name] = columns[columns < half], rows[below_the_legend]
    assert np.median(found["car"][0]) < np.median(found["hawk"][0])
    assert np.ptp(found["car"][0]) == pytest.approx(np.ptp(found["hawk"][0]), rel=0.1)
    assert found["hawk"][1].min() < found["car"][1].min() - 20, "higher up"
    others = np.abs(picture - [44, 160, 44]).sum(axis=2) < 40  # C2
    assert not others[:, half:].any()
    names = [f"{name}_{number}" for name in ("car", "hawk") for number in range(12)]
    assert groups_of([*names, "7"]) == {
        "car (12)": list(range(12)),
        "hawk (12)": list(range(12, 24)),
        "7": [24],
    }
    assert groups_of(names[:3]) == {"car_0": [0], "car_1": [1], "car_2": [2]}


def test_aircraft_above_cars_do_not_hide_them(tmp_path, monkeypatch, capsys):
    """Twelve cars drive on circles below as many aircraft: their colour lies within the others'."""
    path = tmp_path / "fleet.yaml"
    out = tmp_path / "fleet.png"
    path.write_text(
        "version: 1\nvehicles:\n"
        + "".join(
            f"  - {{id: {number + first}, name: {name}_{number}, {more}, type: 3, speed: 20, "
            f"shape: {{type: circle, center: [0, -50], radius: {150 + 20 * number}}}}}\n"
            for first, name, more in (
                (1, "car", "kind: ground"),
                (101, "hawk", "kind: multirotor, altitude: {agl: 40}"),
            )
            for number in range(12)
        ),
        encoding="utf-8",
    )
    assert rfly(monkeypatch, capsys, "plot", str(path), "--out", str(out))[0] == 0
    picture = cv2.imread(str(out)).astype(int)
    picture = picture[:, : picture.shape[1] // 2]
    # C0 and C1; a line of 1.5 points within one of 3.75 leaves the latter as much again
    car, hawk = (
        (np.abs(picture - bgr).sum(axis=2) < 60).sum() for bgr in ([180, 119, 31], [14, 127, 255])
    )
    assert 0.4 < car / hawk < 1.5
