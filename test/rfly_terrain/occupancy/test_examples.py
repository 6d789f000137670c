# ruff: noqa: E501  (a line holds what an expression holds)
"""Worked examples of a binary occupancy map: set-up, call and expected result, as expressions."""

from __future__ import annotations

import subprocess
import sys
from math import inf, nan, pi
from typing import Any

import numpy as np
import pytest

from rfly_terrain import BinaryOccupancyMap, cells_to_image, image_to_cells

NAMES = {
    "Map": BinaryOccupancyMap,
    "np": np,
    "pi": pi,
    "nan": nan,
    "inf": inf,
    "image_to_cells": image_to_cells,
    "cells_to_image": cells_to_image,
}

# fmt: off
EXAMPLES = [
    ("O1", "m = Map()", "(m.grid_size, m.resolution, m.default_value)", "((10, 10), 1.0, False)"),
    ("O2", "m = Map(10, 5, 2)", "(m.grid_size, m.x_world_limits, m.y_world_limits)", "((10, 20), [0, 10], [0, 5])"),
    ("O3", "m = Map(1.05, 0.3, 10)", "(m.grid_size, m.x_world_limits)", "((3, 11), [0, 1.1])"),
    (
        "O4",
        "m = Map.from_grid_size(3, 4, 2)",
        "(m.grid_size, m.x_world_limits, m.y_world_limits)",
        "((3, 4), [0, 2], [0, 1.5])",
    ),
    (
        "O5",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]])",
        "(m.grid_size, m.occupancy_matrix())",
        "((3, 4), [[1,0,0,0],[0,1,0,0],[0,0,0,1]])",
    ),
    ("O6", "m = Map.from_matrix([[0, 0.3], [2, -1]])", "m.occupancy_matrix()", "[[0, 1], [1, 1]]"),
    (
        "O7",
        "m = Map(2, 2, 1, default_value=True)",
        "(m.occupancy_matrix(), m.get_occupancy([[9, 9]]))",
        "([[1,1],[1,1]], [1])",
    ),
    (
        "O8",
        "m = Map(4, 2, 1, grid_origin_in_local=(-1, -2), local_origin_in_world=(10, 20))",
        "(m.grid_location_in_world, m.x_local_limits, m.y_local_limits, m.x_world_limits, m.y_world_limits)",
        "([9, 18], [-1, 3], [-2, 0], [9, 13], [18, 20])",
    ),
    (
        "O9",
        "m = Map(4, 2, 1, grid_origin_in_local=(-1, -2)); m.grid_location_in_world = (5, 5)",
        "(m.local_origin_in_world, m.grid_origin_in_local)",
        "([6, 7], [-1, -2])",
    ),
    (
        "O10",
        "s = Map.from_matrix([[1,0],[0,0]]); m = Map.from_map(s, 2)",
        "(m.occupancy_matrix(), m.x_world_limits)",
        "([[1,1,0,0],[1,1,0,0],[0,0,0,0],[0,0,0,0]], [0, 2])",
    ),
    (
        "O11",
        "s = Map.from_matrix([[0,0,0],[0,0,1],[0,0,0]], 2); m = Map.from_map(s, 1)",
        "(m.occupancy_matrix(), m.x_world_limits)",
        "([[0,0],[0,1]], [0, 2])",
    ),
    (
        "O12",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]]); c = m.copy(); c.set_occupancy([[0,0]], [0], frame='grid'); c.local_origin_in_world = (1, 1)",
        "(m.occupancy_matrix()[0, 0], c.occupancy_matrix()[0, 0], m.local_origin_in_world)",
        "(True, False, [0, 0])",
    ),
    ("O13", "m = Map(10, 10, 1)", "m.world2grid([[0,0],[10,10],[0,10],[10,0]])", "[[9,0],[0,9],[0,0],[9,9]]"),
    ("O14", "m = Map(10, 10, 1)", "m.world2grid([[0.5,0.5],[1,1],[1.5,9.5],[2,0]])", "[[9,0],[9,0],[0,1],[9,1]]"),
    ("O15", "m = Map(10, 10, 20)", "m.world2grid([[8, 5]])", "[[100, 159]]"),
    (
        "O16",
        "m = Map(10, 10, 10)",
        "m.world2grid([[1.2,5],[2.3,4],[3.4,3],[4.5,2],[5.6,1]])",
        "[[50,11],[60,22],[70,33],[80,44],[90,55]]",
    ),
    (
        "O17",
        "m = Map(10, 10, 1)",
        "m.world2grid([[-0.3, 5.5], [10.2, 5.5], [5.5, -1], [5.5, 11.5]])",
        "[[4,-1],[4,10],[11,5],[-2,5]]",
    ),
    (
        "O18",
        "m = Map(10, 10, 1)",
        "m.grid2world([[0,0],[9,0],[9,9],[3,6]])",
        "[[0.5,9.5],[0.5,0.5],[9.5,0.5],[6.5,6.5]]",
    ),
    ("O19", "m = Map(10, 10, 1)", "m.grid2world([[-1, 10]])", "[[10.5, 10.5]]"),
    (
        "O20",
        "m = Map(4, 2, 2, grid_origin_in_local=(-1, -2), local_origin_in_world=(10, 20))",
        "(m.grid2local([[0, 0]]), m.grid2world([[0, 0]]))",
        "([[-0.75, -0.25]], [[9.25, 19.75]])",
    ),
    (
        "O21",
        "m = Map(4, 2, 2, grid_origin_in_local=(-1, -2), local_origin_in_world=(10, 20))",
        "(m.local2grid([[0, -1]]), m.world2grid([[10, 19]]), m.local2world([[0, -1]]), m.world2local([[10, 19]]))",
        "([[2, 1]], [[2, 1]], [[10, 19]], [[0, -1]])",
    ),
    (
        "O22",
        "p = np.zeros((20, 20)); p[10:, 10:] = 1; m = Map.from_matrix(p, 10)",
        "(m.get_occupancy([[1.5, 1]]), m.check_occupancy([[1.5, 1]]), m.get_occupancy([[4, 4]], frame='grid'))",
        "([1], [1], [0])",
    ),
    (
        "O23",
        "m = Map(10, 10, 1)",
        "m.get_occupancy([[5,5],[-1,5],[10,10],[10.1,5]], return_valid=True)",
        "([0,0,0,0], [1,0,1,0])",
    ),
    (
        "O24",
        "m = Map(10, 10, 1); m.default_value = True",
        "m.get_occupancy([[5,5],[-1,5]], return_valid=True)",
        "([0,1], [1,0])",
    ),
    ("O25", "m = Map(10, 10, 1)", "m.check_occupancy([[5,5],[-1,5]], return_valid=True)", "([0,-1], [1,0])"),
    (
        "O26",
        "m = Map(10, 10, 1)",
        "(m.check_occupancy([[10, 0]], frame='grid'), m.get_occupancy([[10, 0]], frame='grid'))",
        "([-1], [0])",
    ),
    (
        "O27",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]])",
        "m.get_occupancy((0, 0), (2, 2))",
        "[[0,1],[0,0]]",
    ),
    (
        "O28",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]])",
        "m.get_occupancy((1.5, 0.5), (2, 1))",
        "[[0, 0]]",
    ),
    (
        "O29",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]])",
        "m.get_occupancy((0, 1), (3, 2), frame='grid')",
        "[[0,0],[1,0],[0,0]]",
    ),
    (
        "O30",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]])",
        "m.check_occupancy((2, 1), (3, 3))",
        "[[-1,-1,-1],[0,0,-1],[0,0,-1]]",
    ),
    (
        "O31",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]]); m.default_value = True",
        "m.get_occupancy((3, 2), (2, 1))",
        "[[0, 1]]",
    ),
    (
        "O32",
        "m = Map(3, 3, 1); ok = m.set_occupancy([[0.5,0.5],[2.5,2.5],[5,5]], [1,1,1])",
        "(ok, m.occupancy_matrix())",
        "([1,1,0], [[0,0,1],[0,0,0],[1,0,0]])",
    ),
    (
        "O33",
        "m = Map(3, 3, 1); m.set_occupancy([[0.5,0.5],[0.5,1.5]], 1); m.set_occupancy([[0.5,0.5],[0.4,0.4]], [0, 1])",
        "m.occupancy_matrix()",
        "[[0,0,0],[1,0,0],[1,0,0]]",
    ),
    (
        "O34",
        "m = Map(4, 4, 1); ok = m.set_occupancy((1, 1), [[1,0],[1,1]])",
        "(ok, m.occupancy_matrix())",
        "([[1,1],[1,1]], [[0,0,0,0],[0,1,0,0],[0,1,1,0],[0,0,0,0]])",
    ),
    (
        "O35",
        "m = Map(3, 3, 1); ok = m.set_occupancy((1, 2), [[1,1,1],[1,0,1]], frame='grid')",
        "(ok, m.occupancy_matrix())",
        "([[1,0,0],[1,0,0]], [[0,0,0],[0,0,1],[0,0,1]])",
    ),
    (
        "O36",
        "m = Map(3, 3, 1, local_origin_in_world=(10, 10)); m.set_occupancy([[0.5, 0.5]], [1], frame='local')",
        "(m.get_occupancy([[10.5, 10.5]]), m.get_occupancy([[2, 0]], frame='grid'))",
        "([1], [1])",
    ),
    (
        "O37",
        "m = Map(5, 5, 1); m.set_occupancy([[2,2]], [1], frame='grid'); m.inflate(1)",
        "m.occupancy_matrix()",
        "[[0,0,0,0,0],[0,1,1,1,0],[0,1,1,1,0],[0,1,1,1,0],[0,0,0,0,0]]",
    ),
    (
        "O38",
        "m = Map(7, 7, 1); m.set_occupancy([[3,3]], [1], frame='grid'); m.inflate(2, 'grid')",
        "m.occupancy_matrix()",
        "[[0,0,0,0,0,0,0],[0,0,1,1,1,0,0],[0,1,1,1,1,1,0],[0,1,1,1,1,1,0],[0,1,1,1,1,1,0],[0,0,1,1,1,0,0],[0,0,0,0,0,0,0]]",
    ),
    (
        "O39",
        "m = Map(3, 3, 1); m.set_occupancy([[0,0]], [1], frame='grid'); m.inflate(0.1)",
        "m.occupancy_matrix()",
        "[[1,1,0],[1,1,0],[0,0,0]]",
    ),
    (
        "O40",
        "m = Map(5, 5, 10); m.set_occupancy([[2.5,2.5]], [1]); m.inflate(0.5)",
        "m.occupancy_matrix().sum(axis=1)[19:32]",
        "[0,5,7,9,11,11,11,11,11,9,7,5,0]",
    ),
    (
        "O41",
        "m = Map(3, 3, 1); m.set_occupancy([[1,1]], [1], frame='grid'); m.inflate(0)",
        "m.occupancy_matrix().sum()",
        "1",
    ),
    (
        "O42",
        "m = Map(10, 10, 1)",
        "m.raycast([2, 3], [8.5, 8])",
        "([[1,8],[2,8]], [[6,1],[6,2],[7,1],[7,2],[6,3],[5,3],[5,4],[4,4],[4,5],[3,5],[3,6],[3,7],[2,7]])",
    ),
    ("O43", "m = Map(10, 10, 1)", "m.raycast([0.5, 0.5], [3.5, 0.5])", "([[9,3]], [[9,0],[9,1],[9,2]])"),
    (
        "O44",
        "m = Map(10, 10, 1)",
        "m.raycast([0.5, 0.5], [2.5, 2.5])",
        "([[7,2]], [[9,0],[9,1],[8,0],[8,1],[8,2],[7,1]])",
    ),
    ("O45", "m = Map(10, 10, 1)", "m.raycast([0.5, 2], [2.5, 2])", "([[7,2],[8,2]], [[7,0],[8,0],[7,1],[8,1]])"),
    ("O46", "m = Map(10, 10, 1)", "m.raycast([4.5, 4.5], [4.5, 4.5])", "([[5,4]], [])"),
    ("O47", "m = Map(10, 10, 1)", "m.raycast([1.5, 1.5, 0], 2, pi/2)", "([[6,1]], [[8,1],[7,1]])"),
    ("O48", "m = Map(10, 10, 1)", "m.raycast([8.5, 0.5], [12.5, 0.5])", "([], [[9,8],[9,9]])"),
    ("O49", "m = Map(10, 10, 1)", "m.raycast([0.25, 0.1], [2.75, 0.9])", "([[9,2]], [[9,0],[9,1]])"),
    ("O50", "m = Map(10, 10, 1)", "m.raycast([0.9, 0.2], [1.2, 1.9])", "([[8,1]], [[9,0],[9,1]])"),
    (
        "O51",
        "m = Map(10, 10, 2); m.set_occupancy([[4,10],[3,5],[7,7]], [1,1,1]); m.inflate(0.25)",
        "m.ray_intersection([4,4,pi/2], [pi/4,-pi/4,0,-pi/8], 6)",
        "[[3.5,4.5],[6,6],[4,9],[nan,nan]]",
    ),
    (
        "O52",
        "m = Map(10, 10, 1); m.set_occupancy([[4.5, 0.5]], [1])",
        "m.ray_intersection([0.5,0.5,0], [0, pi/2], 8)",
        "[[4, 0.5], [nan, nan]]",
    ),
    (
        "O53",
        "m = Map(10, 10, 1); m.set_occupancy([[4.5, 0.5]], [1])",
        "m.ray_intersection([0.5,0.5,0], [0], 3.5)",
        "[[nan, nan]]",
    ),
    (
        "O54",
        "m = Map(10, 10, 1); m.set_occupancy([[4.5, 0.5]], [1])",
        "m.ray_intersection([0.5,0.5,0], [0], 3.6)",
        "[[4, 0.5]]",
    ),
    (
        "O55",
        "m = Map(10, 10, 1); m.set_occupancy([[4.5, 4.5]], [1])",
        "m.ray_intersection([4.25,4.5,0], [0, pi], 5)",
        "[[4.25,4.5],[4.25,4.5]]",
    ),
    (
        "O56",
        "m = Map(10, 10, 1); m.set_occupancy([[4.5, 4.5]], [1])",
        "m.ray_intersection([2, 4, 0], [0], 5)",
        "[[4, 4]]",
    ),
    (
        "O57",
        "m = Map(10, 10, 1); m.set_occupancy([[2.5,1.5],[1.5,2.5]], [1,1])",
        "m.ray_intersection([0.5,0.5,0], [pi/4], 5)",
        "[[2, 2]]",
    ),
    (
        "O58",
        "m = Map(10, 10, 1); m.set_occupancy([[4.5, 4.5]], [1])",
        "m.ray_intersection([-2, 4.5, 0], [0], 10)",
        "[[4, 4.5]]",
    ),
    (
        "O59",
        "m = Map(10, 10, 20); m.insert_ray([5,5,0], 3*np.ones(100), np.linspace(-pi/2, pi/2, 100), 20)",
        "(m.get_occupancy([[8, 5]]), m.get_occupancy([[6, 5]]))",
        "([1], [0])",
    ),
    (
        "O60",
        "m = Map(5, 1, 1, default_value=True); m.insert_ray([0.5,0.5,0], [3], [0], 10)",
        "m.occupancy_matrix()",
        "[[0,0,0,1,1]]",
    ),
    (
        "O61",
        "m = Map(5, 1, 1, default_value=True); m.insert_ray([0.5,0.5,0], [3], [0], 3)",
        "m.occupancy_matrix()",
        "[[0,0,0,0,1]]",
    ),
    (
        "O62",
        "m = Map(5, 1, 1, default_value=True); m.insert_ray([0.5,0.5,0], [inf, nan], [0, 0], 2)",
        "m.occupancy_matrix()",
        "[[0,0,0,1,1]]",
    ),
    (
        "O63",
        "m = Map(5, 2, 1, default_value=True); m.insert_ray([0.5, 0.5], [[2.5, 0.5], [4.5, 0.5]])",
        "m.occupancy_matrix()",
        "[[1,1,1,1,1],[0,0,1,0,1]]",
    ),
    (
        "O64",
        "m = Map(3, 3, 1); m.insert_ray([0.5, 0.5], [[2, 2]])",
        "m.occupancy_matrix()",
        "[[0,1,1],[0,1,1],[0,0,0]]",
    ),
    (
        "O65",
        "m = Map(3, 1, 1, default_value=True); m.insert_ray([0.5, 0.5], [[9.5, 0.5]])",
        "m.occupancy_matrix()",
        "[[0,0,0]]",
    ),
    (
        "O66",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]]); m.move((1, 0))",
        "(m.local_origin_in_world, m.occupancy_matrix())",
        "([1, 0], [[0,0,0,0],[1,0,0,0],[0,0,1,0]])",
    ),
    (
        "O67",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]]); m.move((0, 1))",
        "(m.y_world_limits, m.occupancy_matrix())",
        "([1, 4], [[0,0,0,0],[1,0,0,0],[0,1,0,0]])",
    ),
    (
        "O68",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]]); m.move((-1, -1), fill_value=1)",
        "m.occupancy_matrix()",
        "[[1,0,1,0],[1,0,0,0],[1,1,1,1]]",
    ),
    (
        "O69",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]]); m.move((1.9, -0.9))",
        "m.local_origin_in_world",
        "[1, 0]",
    ),
    (
        "O70",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]]); m.move((2, 0)); m.move((-0.5, 0), move_type='relative')",
        "m.local_origin_in_world",
        "[2, 0]",
    ),
    (
        "O71",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]]); m.move((2, 0)); m.move((0.5, 0))",
        "m.local_origin_in_world",
        "[0, 0]",
    ),
    (
        "O72",
        "m = Map(3, 3, 1, local_origin_in_world=(0.25, 0)); m.move((2, 2))",
        "m.local_origin_in_world",
        "[1.25, 2]",
    ),
    (
        "O73",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]]); m.move((7, 7))",
        "(m.occupancy_matrix().any(), m.x_world_limits)",
        "(False, [7, 11])",
    ),
    (
        "O74",
        "w = Map.from_matrix(np.eye(6)); m = Map(2, 2, 1); m.move((2, 2), move_type='relative', sync_with=w)",
        "m.occupancy_matrix()",
        "[[1,0],[0,1]]",
    ),
    (
        "O75",
        "w = Map.from_matrix(np.eye(6)); m = Map(2, 2, 1); m.move((5, 0), fill_value=1, sync_with=w)",
        "m.occupancy_matrix()",
        "[[0,1],[1,1]]",
    ),
    (
        "O76",
        "w = Map.from_matrix(np.ones((4, 4))); m = Map(3, 3, 1, local_origin_in_world=(2, 2)); r = m.sync_with(w)",
        "(m.occupancy_matrix(), r)",
        "([[0,0,0],[1,1,0],[1,1,0]], [[0,0,0],[1,1,0],[1,1,0]])",
    ),
    (
        "O77",
        "w = Map(1, 1, 1); m = Map.from_matrix(np.ones((2, 2))); m.default_value = True; m.sync_with(w)",
        "m.occupancy_matrix()",
        "[[1,1],[0,1]]",
    ),
    (
        "O78",
        "w = Map.from_matrix([[1,0],[0,0]], 2); m = Map(1, 1, 4); m.sync_with(w)",
        "m.occupancy_matrix()",
        "[[1,1,0,0],[1,1,0,0],[0,0,0,0],[0,0,0,0]]",
    ),
    (
        "O79",
        "m = Map.from_matrix([[1,0,0,0],[0,1,0,0],[0,0,0,1]]); m.grid_location_in_world = (-2, 3); info, data = m.to_occupancy_grid()",
        "(info['width'], info['height'], info['resolution'], info['origin'], data)",
        "(4, 3, 1.0, (-2, 3, 0), [0,0,0,100, 0,100,0,0, 100,0,0,0])",
    ),
    (
        "O80",
        "m = Map.from_occupancy_grid({'width': 3, 'height': 2, 'resolution': 0.05000000074505806, 'origin': (1, 2, 0)}, [0,49,50, -1,100,0])",
        "(m.occupancy_matrix(), m.resolution, m.grid_location_in_world)",
        "([[0,1,0],[0,0,1]], 20.0, [1, 2])",
    ),
    (
        "O81",
        "m = Map.from_occupancy_grid({'width': 3, 'height': 1, 'resolution': 1, 'origin': (0, 0, 0)}, [-1,70,71], 71, True)",
        "m.occupancy_matrix()",
        "[[1,0,1]]",
    ),
    ("O82", "", "image_to_cells([[0, 89, 90, 191, 192, 205, 254, 255]])", "[[100,100,-1,-1,0,0,0,0]]"),
    ("O83", "", "image_to_cells([[0, 205, 254]], free_thresh=0.196)", "[[100,-1,0]]"),
    ("O84", "", "image_to_cells([[0, 127, 255]], negate=1)", "[[0,-1,100]]"),
    ("O85", "", "image_to_cells([[0, 128, 255]], mode='scale')", "[[100,62,0]]"),
    ("O86", "", "image_to_cells([[0, 64, 100, 101]], mode='raw')", "[[0,64,100,-1]]"),
    ("O87", "", "cells_to_image([[0, 25, 26, 64, 65, 100, -1]])", "[[254,254,205,205,0,0,205]]"),
]

ERRORS = [
    ("X1", "Map(0, 1, 1)", "zero width"),
    ("X2", "Map(1, 1, -1)", "negative resolution"),
    ("X3", "Map.from_matrix([1, 0])", "not 2-D"),
    ("X4", "Map.from_matrix([[nan]])", "NaN cell"),
    ("X5", "Map(1,1,1,default_value=2)", "default not 0 or 1"),
    ("X6", "Map(3,3,1).world2grid([[1,2,3]])", "not n-by-2"),
    ("X7", "Map(3,3,1).world2grid([[nan, 1]])", "NaN point"),
    ("X8", "Map(3,3,1).set_occupancy([[1,1],[2,2]], [1,0,1])", "wrong count of values"),
    ("X9", "Map(3,3,1).get_occupancy([[1,1]], frame='map')", "unknown frame"),
    ("X10", "Map(3,3,1).inflate(-1)", "negative radius"),
    ("X11", "Map(3,3,1).raycast([1,1,0], -1, 0)", "negative range"),
    ("X12", "Map(3,3,1).ray_intersection([1,1,0], [0], 0)", "max_range not positive"),
    ("X13", "Map(3,3,1).insert_ray([1,1,0], [1,2], [0], 5)", "ranges and angles differ in length"),
    ("X14", "Map(3,3,1).move((1,1), move_type='up')", "unknown move type"),
    ("X15", "Map(3,3,1).move((1,1), fill_value=2)", "fill value not 0 or 1"),
    ("X16", "Map.from_occupancy_grid({'width':1,'height':1,'resolution':1,'origin':(0,0,0.5)}, [0])", "rotated origin"),
    ("X17", "Map.from_occupancy_grid({'width':2,'height':1,'resolution':1,'origin':(0,0,0)}, [0])", "data too short"),
]
# fmt: on


def check(actual: Any, expected: Any) -> None:
    """Tuples element by element, numbers within 1e-9, booleans as 0 and 1."""
    if isinstance(expected, tuple) and isinstance(actual, tuple):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            check(one, other)
        return
    actual = np.asarray(actual, float)
    expected = np.asarray(expected, float)
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-9)


def run(setup: str, call: str, expected: str) -> None:
    names = dict(NAMES)
    exec(setup, names)
    actual = eval(call, names)
    wanted = eval(expected, names)
    if "raycast" in call:
        for cells, wanted_cells in zip(actual, wanted, strict=True):
            assert cells.shape == (len(wanted_cells), 2)
            assert cells.dtype.kind == "i"
            assert set(map(tuple, cells.tolist())) == set(map(tuple, wanted_cells))
        return
    check(actual, wanted)


@pytest.mark.parametrize("example", EXAMPLES, ids=[example[0] for example in EXAMPLES])
def test_example(example):
    run(*example[1:])


@pytest.mark.parametrize("example", ERRORS, ids=[example[0] for example in ERRORS])
def test_refused(example):
    with pytest.raises(ValueError, match=r"\w"):
        eval(example[1], dict(NAMES))


def test_all_examples_are_here():
    assert [name for name, *_ in EXAMPLES] == [f"O{n}" for n in range(1, 88)]
    assert [name for name, *_ in ERRORS] == [f"X{n}" for n in range(1, 18)]


def test_examples_in_a_process_of_their_own():
    """Whatever this process has loaded."""
    program = f"""
import importlib.util
spec = importlib.util.spec_from_file_location("examples", {__file__!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
for name, *example in module.EXAMPLES:
    try:
        module.run(*example)
    except AssertionError as error:
        raise SystemExit(f"{{name}}: {{error}}")
print(len(module.EXAMPLES))
"""
    run_ = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False
    )
    assert run_.returncode == 0, run_.stderr
    assert run_.stdout.split() == [str(len(EXAMPLES))]
