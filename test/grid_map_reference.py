"""A grid_map_msgs/GridMap read cell by cell, as grid_map's documentation has it. No NumPy tricks:
one formula a line.

A matrix lies column by column (`column_index` is the outer dimension). Index (i, j) of a circular
buffer that starts at (outer_start_index, inner_start_index) is the cell (i − outer) mod rows, (j −
inner) mod columns, counted from the corner at the largest x and y: the first index towards −x, the
second towards −y.
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
