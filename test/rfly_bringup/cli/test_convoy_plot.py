# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The demo's picture: where the tracks are, also for odd fleets."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from matplotlib.figure import Figure

from rfly_bringup.cli.track_plots import draw_convoy
from rfly_terrain.height_map.height_map import HeightMap

AXIS = np.arange(-1000.0, 1001.0, 20.0)
GROUND = HeightMap(
    40 * np.sin(AXIS[:, None] / 300) * np.cos(AXIS / 200),
    origin_x=-1000,
    origin_y=-1000,
    step_x=20,
    step_y=20,
)


def track(x, y, lift=0.0):
    """Return positions, the last one `lift` m above the ground."""
    z = np.asarray(GROUND.altitude(np.asarray(x, float), np.asarray(y, float)))
    z[-1] += lift
    return np.column_stack([x, y, z])


@pytest.fixture
def panels(monkeypatch):
    """The panels of the picture that was drawn last, by their titles."""
    made = []
    save = Figure.savefig

    def savefig(figure, *target, **options):
        made.append(figure)
        save(figure, *target, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return lambda: {axes.get_title(): axes for axes in made[-1].axes}


def test_tracks_names_and_distance_from_the_ground(tmp_path, panels):
    way = np.linspace(0, 300, 61)
    draw_convoy(
        GROUND,
        {7: track(way, 0 * way), 9: track(way + 50, 0 * way + 40, 0.012)},
        tmp_path / "a.png",
    )
    assert cv2.imread(str(tmp_path / "a.png")).std() > 10
    shown = panels()
    near = shown[": 2 vehicles, 122 positions read from UDP datagrams"]
    heights = shown["height of each vehicle, within 12 mm of the ground"]
    x_min, x_max = near.get_xlim()
    assert -1000 < x_min < 0
    assert 350 < x_max < 1000
    names = [text for text in near.texts if text.get_bbox_patch() is not None]
    assert [name.get_text() for name in names] == ["7", "9"]
    assert [name.xy[0] for name in names] == [300.0, 350.0], "where the tracks end"
    line = heights.lines[0]
    np.testing.assert_allclose(line.get_xdata(), way, atol=1e-9)
    np.testing.assert_allclose(line.get_ydata(), GROUND.altitude(way, 0 * way))

    # the part of the map that is shown is marked on the whole map
    x, y = shown["the whole map"].lines[0].get_data()
    assert (min(x), max(x), min(y), max(y)) == (*near.get_xlim(), *near.get_ylim())


@pytest.mark.parametrize(
    "places",
    [
        {1: ([10.0], [20.0])},
        {1: ([1e5, 1e5 + 1], [2e5, 2e5])},
        {vehicle: ([10.0 * vehicle, 500], [0, 0]) for vehicle in range(1, 40)},
    ],
    ids=["standing", "beside the map", "many"],
)
def test_odd_fleets_make_a_picture_too(tmp_path, places):
    tracks = {vehicle: track(x, y) for vehicle, (x, y) in places.items()}
    draw_convoy(GROUND, tracks, tmp_path / "a.png")
    assert cv2.imread(str(tmp_path / "a.png")).std() > 10
