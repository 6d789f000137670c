# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Reader of grid_map_msgs/GridMap cell by cell, after grid_map's documentation.

There are no NumPy tricks: one formula a line.
"""

from __future__ import annotations


def cells(message):
    """{(x, y) of a cell's centre, rounded to micrometres: {layer: value}}."""
    info = message.info
    rows = round(info.length_x / info.resolution)
    columns = round(info.length_y / info.resolution)
    found: dict = {}

    for name, array in zip(message.layers, message.data, strict=True):
        outer, inner = array.layout.dim
        assert (outer.label, outer.size, outer.stride) == ("column_index", columns, rows * columns)
        assert (inner.label, inner.size, inner.stride) == ("row_index", rows, rows)
        assert len(array.data) == rows * columns
        for j in range(columns):
            for i in range(rows):
                from_corner = (
                    (i - message.outer_start_index) % rows,
                    (j - message.inner_start_index) % columns,
                )
                x = (
                    info.pose.position.x
                    + info.length_x / 2
                    - (from_corner[0] + 0.5) * info.resolution
                )
                y = (
                    info.pose.position.y
                    + info.length_y / 2
                    - (from_corner[1] + 0.5) * info.resolution
                )
                found.setdefault((round(x, 6) + 0.0, round(y, 6) + 0.0), {})[name] = array.data[
                    j * rows + i
                ]

    assert len(found) == rows * columns

    return found
