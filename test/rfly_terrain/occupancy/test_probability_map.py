# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""OccupancyMap: Bayes' rule on paper, thresholds, rays, window; the order of observations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rfly_terrain import BinaryOccupancyMap, LidarScan, OccupancyMap, matlab_mapping

probability = st.floats(0.05, 0.95)
CELL = [[0.5, 0.5]]


def fused(prior, *observations):
    """Bayes' rule in probabilities, not in log-odds."""
    p = prior
    for observed in observations:
        p = p * observed / (p * observed + (1 - p) * (1 - observed))
    return p


def test_defaults_are_those_of_matlab():
    m = OccupancyMap()
    assert m.GridSize == (10, 10)
    assert (m.OccupiedThreshold, m.FreeThreshold, m.DefaultValue) == (0.65, 0.2, 0.5)
    assert m.ProbabilitySaturation.tolist() == [0.001, 0.999]
    assert (m.DataType, m.LayerName) == ("double", "probabilityLayer")
    assert (m.occupancy_matrix() == 0.5).all()
    assert (m.check_occupancy() == -1).all()


@given(st.lists(probability, max_size=6))
def test_updates_are_bayes_rule(observations):
    m = OccupancyMap(1, 1)
    m.probability_saturation = (1e-12, 1 - 1e-12)
    for observed in observations:
        m.update_occupancy(CELL, observed)
    assert m.get_occupancy(CELL)[0] == pytest.approx(fused(0.5, *observations))


@given(st.permutations([0.1, 0.3, 0.45, 0.6, 0.7, 0.8]))
def test_the_order_of_observations_does_not_matter(observations):
    m = OccupancyMap(1, 1)
    for observed in observations:
        m.update_occupancy(CELL, observed)
    assert m.get_occupancy(CELL)[0] == pytest.approx(fused(0.5, *sorted(observations)))


def test_certain_observations_saturate():
    m = OccupancyMap(3, 1)
    m.update_occupancy([[0.5, 0.5], [1.5, 0.5]], [0, 1])
    m.set_occupancy([[2.5, 0.5]], 1)
    assert m.occupancy_matrix() == pytest.approx(np.array([[0.001, 0.999, 0.999]]))
    m.ProbabilitySaturation = [0.1, 0.8]
    assert m.occupancy_matrix() == pytest.approx(np.array([[0.1, 0.8, 0.8]]))
    m.update_occupancy([[0.5, 0.5]], 0.8)  # from 0.1: 0.08 / (0.08 + 0.18)
    assert m.get_occupancy(CELL)[0] == pytest.approx(0.08 / 0.26)


def test_true_and_false_are_hit_and_miss():
    m = OccupancyMap(2, 1)
    m.update_occupancy([[0.5, 0.5], [1.5, 0.5]], [True, False])
    assert m.occupancy_matrix() == pytest.approx(np.array([[0.7, 0.4]]))


def test_a_point_named_twice_is_observed_twice():
    m = OccupancyMap(1, 1)
    m.update_occupancy([[0.5, 0.5], [0.4, 0.4], [5, 5]], [0.7, 0.7, 0.9])
    assert m.get_occupancy(CELL)[0] == pytest.approx(fused(0.5, 0.7, 0.7))


def test_matrices_and_blocks_are_observed():
    m = OccupancyMap(2, 2)
    m.update_occupancy([[0.7, 0.5], [0.5, 0.3]])
    m.update_occupancy((1, 0), [[0.6]])
    assert m.occupancy_matrix() == pytest.approx(np.array([[0.7, 0.5], [0.5, fused(0.3, 0.6)]]))
    m.update_occupancy((0, 0), [[0.6]], frame="grid")
    assert m.get_occupancy([[0, 0]], frame="grid")[0] == pytest.approx(fused(0.7, 0.6))


def test_thresholds_are_not_themselves_occupied_or_free():
    m = OccupancyMap([[0.65, 0.66, 0.2, 0.19, 0.5]])
    assert m.check_occupancy().tolist() == [[-1, 1, -1, 0, -1]]
    assert m.occupancy_matrix("ternary").tolist() == [[-1, 1, -1, 0, -1]]
    m.OccupiedThreshold = 0.5
    m.FreeThreshold = 0.3
    assert m.check_occupancy().tolist() == [[1, 1, 0, 0, -1]]
    values, inside = m.check_occupancy([[0.5, 0.5], [9, 9]], return_valid=True)
    assert values.tolist() == [1, -1]
    assert inside.tolist() == [True, False]


def test_outside_is_the_default_value():
    m = OccupancyMap([[0.9]], DefaultValue=0.3)
    values, inside = m.get_occupancy([[0.5, 0.5], [9, 9]], return_valid=True)
    assert values == pytest.approx([0.9, 0.3])
    assert inside.tolist() == [True, False]
    assert m.get_occupancy((0, 0), (2, 1)) == pytest.approx(np.array([[0.9, 0.3]]))


def test_a_ray_misses_along_its_way_and_hits_at_its_end():
    m = OccupancyMap(5, 1)
    m.insert_ray([0.5, 0.5], [[3.5, 0.5]])
    assert m.occupancy_matrix() == pytest.approx(np.array([[0.4, 0.4, 0.4, 0.7, 0.5]]))
    m.insert_ray([0.5, 0.5], [[3.5, 0.5]], [0.3, 0.9])
    assert m.get_occupancy([[0.5, 0.5], [3.5, 0.5]]) == pytest.approx(
        [fused(0.4, 0.3), fused(0.7, 0.9)]
    )


def test_the_end_of_a_ray_at_maximum_range_is_not_updated():
    m = OccupancyMap(5, 1)
    scan = LidarScan([9.0, math.nan], [0.0, 0.0])
    m.insert_ray([0.5, 0.5, 0], scan, 3)
    assert m.occupancy_matrix() == pytest.approx(np.array([[0.4, 0.4, 0.4, 0.5, 0.5]]))


def test_every_ray_is_an_observation():
    """A scan of 100 rays of 3 m: two of them touch the cell one metre ahead."""
    m = OccupancyMap(10, 10, 20)
    for _ in range(2):
        m.insert_ray([5, 5, 0], 3 * np.ones(100), np.linspace(-np.pi / 2, np.pi / 2, 100), 20)
    assert m.get_occupancy([[8, 5], [6, 5]]) == pytest.approx(
        [fused(0.5, 0.7, 0.7), fused(0.5, *[0.4] * 4)]
    )


@given(st.permutations(range(5)))
def test_the_order_of_rays_does_not_matter(order):
    ends = np.array([[8, 1], [8.2, 1.4], [3, 9], [0.5, 9.5], [9.9, 9.9]])
    one = OccupancyMap(10, 10, 2)
    one.insert_ray([1, 1], ends)
    other = OccupancyMap(10, 10, 2)
    for i in order:
        other.insert_ray([1, 1], ends[[i]])
    assert one.occupancy_matrix() == pytest.approx(other.occupancy_matrix())


@pytest.mark.parametrize(
    "arguments",
    [
        ([1, 1, 0], LidarScan([2, 3], [0, 1]), 9, [0.4, 0.7]),
        ([1, 1, 0], [2, 3], [0, 1], 9, [0.4, 0.7]),
        ([1, 1, 0], [2, 3], [0, 1], 9),
        ([1, 1], [[3, 1], [1 + 3 * math.cos(1), 1 + 3 * math.sin(1)]]),
        ([1, 1], [[3, 1], [1 + 3 * math.cos(1), 1 + 3 * math.sin(1)]], [0.4, 0.7]),
    ],
)
def test_call_forms_of_insert_ray(arguments):
    m = OccupancyMap(10, 10, 2)
    m.insertRay(*arguments)
    named = OccupancyMap(10, 10, 2)
    named.insert_ray([1, 1, 0], [2, 3], angles=[0, 1], max_range=9, inverse_model=(0.4, 0.7))
    assert (m.occupancy_matrix() == named.occupancy_matrix()).all()


@pytest.mark.parametrize("radius", [1, 2, 12])
def test_inflation_takes_the_largest_of_the_disc(radius):
    """Against the definition, cell by cell."""
    p = np.random.default_rng(radius).uniform(0.05, 0.95, (17, 23))
    m = OccupancyMap(p)
    m.inflate(radius)
    i, j = np.indices(p.shape)
    for row, column in ((0, 0), (8, 11), (16, 22), (3, 20)):
        near = (i - row) ** 2 + (j - column) ** 2 <= radius**2 + radius
        assert m.occupancy_matrix()[row, column] == pytest.approx(p[near].max())


def test_inflation_and_rays_are_those_of_the_binary_map():
    p = np.random.default_rng(5).uniform(0.05, 0.95, (20, 20))
    m = OccupancyMap(p, 2)
    binary = BinaryOccupancyMap.from_matrix(p > 0.65, 2)
    m.inflate(0.6)
    binary.inflate(0.6)
    assert ((m.check_occupancy() == 1) == binary.occupancy_matrix()).all()

    m = OccupancyMap(np.where(p > 0.9, 0.9, 0.1), 2)
    binary = BinaryOccupancyMap.from_matrix(p > 0.9, 2)
    pose = [4.3, 5.1, 0.2]
    angles = np.linspace(-3, 3, 40)
    hits = m.ray_intersection(pose, angles, 8)
    assert np.array_equal(hits, binary.ray_intersection(pose, angles, 8), equal_nan=True)
    assert np.isnan(m.ray_intersection(pose, angles, 8, 0.95)).all()

    for a, b in zip(m.raycast(pose, 6, 0.3), binary.raycast(pose, 6, 0.3), strict=True):
        assert a.tolist() == b.tolist()


def test_the_occupied_cells_follow_changes_and_moves():
    m = OccupancyMap(5, 1)
    assert np.isnan(m.ray_intersection([0.5, 0.5, 0], [0], 9)).all()
    m.set_occupancy([[3.5, 0.5]], 0.9)
    assert m.ray_intersection([0.5, 0.5, 0], [0], 9).tolist() == [[3, 0.5]]
    m.local_origin_in_world = (10, 0)
    assert m.ray_intersection([10.5, 0.5, 0], [0], 9).tolist() == [[13, 0.5]]
    m.OccupiedThreshold = 0.95
    assert np.isnan(m.ray_intersection([10.5, 0.5, 0], [0], 9)).all()


def test_the_window_moves_and_takes_over_values():
    m = OccupancyMap([[0.1, 0.2, 0.3]])
    m.move((1, 0))
    assert m.occupancy_matrix() == pytest.approx(np.array([[0.2, 0.3, 0.5]]))
    m.move((1, 0), MoveType="Relative", FillValue=0.9)
    assert m.occupancy_matrix() == pytest.approx(np.array([[0.3, 0.5, 0.9]]))
    world = OccupancyMap(np.full((1, 9), 0.7))
    m.move((1, 0), move_type="relative", sync_with=world)
    assert m.occupancy_matrix() == pytest.approx(np.array([[0.5, 0.9, 0.7]]))
    assert m.sync_with(world) == pytest.approx(np.full((1, 3), 0.7))
    m.local_origin_in_world = (7, 0)
    assert m.sync_with(world) == pytest.approx(np.array([[0.7, 0.7, 0.5]]))


def test_copies_are_independent_and_resampled_ones_keep_obstacles():
    m = OccupancyMap([[0.1, 0.8], [0.3, 0.4]], 2, FreeThreshold=0.25, LocalOriginInWorld=(3, 4))
    twin = m.copy()
    twin.set_occupancy([[3.2, 4.2]], 0.9)
    assert m.get_occupancy([[3.2, 4.2]]) == pytest.approx([0.3])
    assert twin.FreeThreshold == 0.25
    assert twin.LocalOriginInWorld.tolist() == [3, 4]
    assert OccupancyMap(m, 1).occupancy_matrix() == pytest.approx(np.array([[0.8]]))
    finer = OccupancyMap(m, 4).occupancy_matrix()
    assert finer == pytest.approx(np.kron([[0.1, 0.8], [0.3, 0.4]], np.ones((2, 2))))


def test_matlabs_call_forms():
    m = matlab_mapping.occupancyMap(3, 4, 2, "grid", OccupiedThreshold=0.7)
    assert (m.GridSize, m.Resolution, m.OccupiedThreshold) == ((3, 4), 2.0, 0.7)
    matlab_mapping.updateOccupancy(m, [0, 0], 0.9, "grid")
    assert matlab_mapping.getOccupancy(m, [0, 0], "grid") == pytest.approx([0.9])
    assert matlab_mapping.checkOccupancy(m, [0, 0], "grid").tolist() == [1]
    assert matlab_mapping.copy(m).OccupiedThreshold == 0.7


def test_pictures_have_the_probabilities():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, ax = pyplot.subplots()
    image = OccupancyMap([[0.1, 0.8]]).show(ax=ax)
    assert np.asarray(image.get_array()) == pytest.approx(np.array([[0.1, 0.8]]))
    assert ax.get_title() == "Occupancy Grid"
    pyplot.close(figure)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda m: OccupancyMap([[1.5]]), "p: 1.5, expected probabilities"),
        (lambda m: m.set_occupancy(CELL, -0.1), "values: -0.1"),
        (lambda m: m.update_occupancy([[0.5]]), r"expected \(10, 10\)"),
        (lambda m: setattr(m, "free_threshold", 0.7), "above the occupied_threshold 0.65"),
        (lambda m: setattr(m, "probability_saturation", (0, 1)), "0 < min ≤ 0.5 ≤ max < 1"),
        (lambda m: m.insert_ray([0, 0], [[1, 1]], [0.7, 0.4]), r"expected \[miss, hit\]"),
        (lambda m: m.insert_ray([0, 0], [[1, 1]], [0.4, 0.7], 9), "4 arguments, expected at most"),
        (lambda m: m.sync_with(BinaryOccupancyMap()), "source: BinaryOccupancyMap, expected an O"),
        (lambda m: m.move((0, 0), sync_with=3), "sync_with: int, expected an OccupancyMap"),
        (lambda m: m.occupancy_matrix("binary"), "form: 'binary'"),
        (lambda m: m.ray_intersection([0, 0, 0], [0], 5, 2), "threshold: 2, expected prob"),
        (lambda m: OccupancyMap(0, 1), "width: 0, expected more than 0"),
        (lambda m: setattr(m, "default_value", 2), "default_value: 2, expected probabilities"),
    ],
)
def test_bad_arguments_are_refused(call, text):
    m = OccupancyMap()
    with pytest.raises(ValueError, match=text):
        call(m)
    assert (m.occupancy_matrix() == 0.5).all()


def test_messages_have_percentages_and_unknown_cells():
    """Bottom row first, −1 for 0.5, and back."""
    m = OccupancyMap([[0.5, 0.25], [0.9, 0.004]], 4, LocalOriginInWorld=(1, 2))
    info, data = m.to_occupancy_grid()
    assert data.tolist() == [90, 0, -1, 25]
    assert (info["width"], info["height"], info["resolution"]) == (2, 2, 0.25)
    assert info["origin"] == (1, 2, 0)
    again = OccupancyMap.from_occupancy_grid(info, data)
    assert again.occupancy_matrix() == pytest.approx(np.array([[0.5, 0.25], [0.9, 0.001]]))
    assert again.GridLocationInWorld.tolist() == [1, 2]
    assert again.Resolution == 4
    with pytest.raises(ValueError, match="data: 101, expected percentages up to 100"):
        OccupancyMap.from_occupancy_grid(info, [0, 0, 0, 101])


def test_rows_and_columns_may_count_from_one():
    nav = matlab_mapping.one_based
    m = nav.occupancyMap(3, 4, 1, "grid")
    nav.updateOccupancy(m, [1, 4], 0.9, "grid")
    nav.setOccupancy(m, [3, 1], [[0.1, 0.2]], "grid")
    assert m.occupancy_matrix() == pytest.approx(
        np.array([[0.5, 0.5, 0.5, 0.9], [0.5] * 4, [0.1, 0.2, 0.5, 0.5]])
    )
    assert nav.getOccupancy(m, [1, 4], "grid") == pytest.approx([0.9])
    assert nav.getOccupancy(m, [3, 1], [1, 2], "grid") == pytest.approx(np.array([[0.1, 0.2]]))
    assert nav.world2grid(m, [3.5, 2.5]).tolist() == [[1, 4]]

    end, _ = nav.raycast(m, [0.5, 0.5], [3.5, 2.5])
    assert end.tolist() == [[1, 4]]
    assert nav.copy(m).one_based

    m.one_based = False
    assert nav.raycast(m, [0.5, 0.5], [3.5, 2.5])[0].tolist() == [[0, 3]]
