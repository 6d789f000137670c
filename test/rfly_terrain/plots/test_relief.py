# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The relief picture: right way up, lit from the north-west, its colours those of the heights."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rfly_common.errors import ConfigError
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.plots.relief import draw_relief, write_relief


def terrain(heights, step_x=10.0, step_y=10.0, origin=(0.0, 0.0)) -> HeightMap:
    return HeightMap(
        heights, origin_x=origin[0], origin_y=origin[1], step_x=step_x, step_y=step_y, name="hill"
    )


def drawn(height_map, **options):
    figure = Figure()
    axes = figure.add_subplot()
    colours = draw_relief(axes, height_map, **options)
    return figure, axes, axes.images[0], colours


def cone(rows, columns, row, column):
    r, c = np.mgrid[0:rows, 0:columns]
    return np.maximum(0.0, 8.0 - np.hypot(r - row, c - column))


@pytest.mark.parametrize(("step_x", "step_y"), [(10, 10), (-10, 10), (10, -10), (-10, -10)])
def test_a_peak_lies_where_its_coordinates_are(step_x, step_y):
    """One peak off the diagonal: x east to the right, y north up, for all signs of the steps."""
    height_map = terrain(cone(40, 60, 10, 45), step_x, step_y, origin=(5.0, -7.0))
    _, axes, image, _ = drawn(height_map)
    left, right, bottom, top = image.get_extent()
    picture = np.asarray(image.get_array())
    assert image.origin == "lower"
    # the ground around is level, so the peak's own colours are the only ones that differ from it
    level = picture[0, 0]
    rows, columns = np.nonzero(np.abs(picture - level).max(axis=2) > 0.02)
    x = left + (columns.mean() + 0.5) * (right - left) / picture.shape[1]
    y = bottom + (rows.mean() + 0.5) * (top - bottom) / picture.shape[0]
    assert x == pytest.approx(5.0 + 10 * step_x, abs=5)
    assert y == pytest.approx(-7.0 + 45 * step_y, abs=5)
    x_min, x_max, y_min, y_max = height_map.bounds
    assert (*axes.get_xlim(), *axes.get_ylim()) == (x_min, x_max, y_min, y_max)
    assert axes.get_aspect() == 1


def test_light_comes_from_the_north_west():
    """The side of a cone that faces north-west is brighter than the opposite one.

    Level ground keeps its tint.
    """
    _, _, image, colours = drawn(terrain(cone(41, 41, 20, 20)), contours=False)
    brightness = np.asarray(image.get_array()).mean(axis=2)  # first index north, second east
    scale = (brightness.shape[0] - 1) / 40
    north_west = brightness[round(24 * scale), round(16 * scale)]
    south_east = brightness[round(16 * scale), round(24 * scale)]
    assert north_west > south_east + 0.15
    np.testing.assert_allclose(
        np.asarray(image.get_array())[0, 0], colours.to_rgba(0.0)[:3], atol=0.02
    )


def test_axes_and_colour_bar_are_labelled_with_units():
    figure, axes, _, colours = drawn(terrain(cone(20, 30, 5, 5)))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x east (m)", "y north (m)")
    assert figure.axes[1].get_ylabel() == "z up (m)"
    assert colours.get_clim() == (0.0, pytest.approx(8.0))


def test_higher_ground_is_brighter_and_none_is_white():
    """White would look like missing data: the highest tint stays clearly yellow, 30 of 255."""
    *_, colours = drawn(terrain(cone(20, 30, 5, 5)))
    tints = np.round(255 * colours.to_rgba(np.linspace(0, 8, 9))[:, :3])
    lightness = tints @ (0.2126, 0.7152, 0.0722)
    assert (np.diff(lightness) > 5).all()
    assert (tints.max(axis=1) - tints.min(axis=1)).min() > 30


def test_contours_are_at_round_heights(monkeypatch):
    """0 … 8 m: about ten lines, a metre apart, each where the ground has its height."""
    contours = []
    draw = Axes.contour
    monkeypatch.setattr(
        Axes,
        "contour",
        lambda axes, *args, **options: (
            contours.append(draw(axes, *args, **options)) or contours[-1]
        ),
    )

    r, c = np.mgrid[0:61, 0:61]
    drawn(terrain(4 - 4 * np.cos(np.pi * r / 30) * np.cos(np.pi * c / 30)))

    assert contours[0].levels.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    for level, lines in zip(contours[0].levels[1:-1], contours[0].allsegs[1:-1], strict=True):
        assert lines
        for line in lines:
            z = 4 - 4 * np.cos(np.pi * line[:, 0] / 300) * np.cos(np.pi * line[:, 1] / 300)
            np.testing.assert_allclose(z, level, atol=0.01)


def test_steep_ground_has_no_hatch():
    """The light on a steep wave is that of the wave itself.

    No trace of the samples' grid shows between them.
    """
    r, c = np.mgrid[0:81, 0:81]
    _, _, image, _ = drawn(terrain(60 * np.sin(r / 9) + 50 * np.cos(c / 8), 5, 5), contours=False)
    picture = np.asarray(image.get_array())[
        ..., 1
    ]  # twelve and a half pixels from sample to sample
    rough = np.diff(picture[100:-100, 100:-100], n=3, axis=1)
    spectrum = np.abs(np.fft.rfft(rough * np.hanning(rough.shape[1]), axis=1)).mean(axis=0)
    at_grid = round(rough.shape[1] / ((picture.shape[1] - 1) / 80))
    assert spectrum[at_grid - 2 : at_grid + 3].max() < 2 * np.median(
        spectrum[at_grid - 20 : at_grid + 20]
    )


def test_a_cliff_leaves_the_level_ground_beside_it_level():
    heights = np.zeros((60, 60))
    heights[30:] = 100.0
    _, _, image, _ = drawn(terrain(heights), contours=False)
    picture = np.asarray(image.get_array())
    scale = (picture.shape[1] - 1) / 59
    for level in (picture[:, : int(27 * scale)], picture[:, int(33 * scale) :]):
        assert np.ptp(level, axis=(0, 1)).max() < 1e-6


@pytest.mark.parametrize("height", [0.0, -433.0, 8848.0])
def test_level_ground_and_the_smallest_map_can_be_drawn(tmp_path, height):
    write_relief(terrain(np.full((2, 2), height)), tmp_path / "level.png")
    assert cv2.imread(str(tmp_path / "level.png")).std() > 1


def test_a_region_takes_its_own_colours():
    """Only the samples inside; the scale spans their heights."""
    height_map = terrain(cone(40, 40, 10, 10))
    _, axes, _, colours = drawn(height_map, region=(100.0, 200.0, 100.0, 150.0))
    assert (*axes.get_xlim(), *axes.get_ylim()) == (100, 200, 100, 150)
    assert colours.get_clim()[1] == 8
    _, axes, image, _ = drawn(height_map, region=(104.0, 206.0, 93.0, 1e9))
    assert (*axes.get_xlim(), *axes.get_ylim()) == (104, 206, 93, 390)
    # the picture fills the axes also where the rim lies between samples
    assert (np.array(image.get_extent()) * [1, -1, 1, -1] <= np.array([104, -206, 93, -390])).all()
    with pytest.raises(ValueError, match="at least 2 x 2"):
        drawn(height_map, region=(100.0, 101.0, 100.0, 150.0))


def test_a_large_map_is_averaged_down():
    """5,000 x 3 samples become at most 1,600 pixels on a side and keep their extent."""
    height_map = terrain(np.linspace(0, 100, 15_000).reshape(5000, 3))
    _, _, image, _ = drawn(height_map)
    assert np.asarray(image.get_array()).shape[:2] == (3, 1600)
    assert image.get_extent() == pytest.approx([-5, 49_995, -5, 25])


def test_pictures_of_other_kinds(tmp_path):
    """The ending chooses the format; an unknown one is refused with the list."""
    height_map = terrain(cone(20, 20, 5, 5))
    write_relief(height_map, tmp_path / "a.pdf")
    write_relief(height_map, tmp_path / "a.svg", title="My hill")
    assert (tmp_path / "a.pdf").read_bytes()[:4] == b"%PDF"
    assert "<svg" in (tmp_path / "a.svg").read_text(encoding="utf-8")
    for name in ("a.xyz", "a"):
        with pytest.raises(ConfigError, match="pictures can be written as"):
            write_relief(height_map, tmp_path / name)
