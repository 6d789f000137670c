# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Clouds written byte by byte with struct, read by sensor_msgs_py and by the few lines that stand
in for it.
"""

from __future__ import annotations

import struct
from array import array

import numpy as np
import pytest
from optional_parts import late_module

from rfly_common.errors import SensorMessageError

pytestmark = pytest.mark.ros

sensor_msgs = late_module("sensor_msgs.msg")
point_clouds = late_module("rfly_common.ros.point_clouds")

POINTS = [
    (1.0, 2.0, 3.0, 7),
    (4.0, 5.0, 6.0, 8),
    (7.5, 8.5, 9.5, 9),
    (-1.0, -2.0, float("nan"), 10),
]


def written(order="<", height=2, padding=0):
    """A cloud of 2 x 2 points: z before x and y, a ring as uint16 behind them, 16 bytes a point,
    padded rows.
    """
    width = len(POINTS) // height
    rows = [POINTS[k * width : (k + 1) * width] for k in range(height)]
    data = b"".join(
        b"".join(struct.pack(order + "fffHxx", z, x, y, ring) for x, y, z, ring in row)
        + b"\xff" * padding
        for row in rows
    )
    places = (
        ("z", 0, sensor_msgs.PointField.FLOAT32),
        ("x", 4, sensor_msgs.PointField.FLOAT32),
        ("y", 8, sensor_msgs.PointField.FLOAT32),
    )
    return sensor_msgs.PointCloud2(
        height=height,
        width=width,
        fields=[
            sensor_msgs.PointField(name=name, offset=offset, datatype=kind, count=1)
            for name, offset, kind in (*places, ("ring", 12, sensor_msgs.PointField.UINT16))
        ],
        is_bigendian=order == ">",
        point_step=16,
        row_step=16 * width + padding,
        data=array("B", data),
    )


@pytest.fixture(params=["sensor_msgs_py", "own"])
def reader(request, monkeypatch):
    if request.param == "own":
        monkeypatch.setattr(point_clouds, "read_points", None)
    elif point_clouds.read_points is None:
        pytest.skip("sensor_msgs_py is not installed")
    return point_clouds.read_fields


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("padding", [0, 5])
def test_fields_are_read_row_by_row(reader, order, padding):
    table = reader(written(order, padding=padding), ["x", "y", "z", "ring"])
    assert table.shape == (4,)
    got = np.array([[float(table[name][k]) for name in ("x", "y", "z", "ring")] for k in range(4)])
    assert np.array_equal(got, np.array(POINTS), equal_nan=True)


def test_an_empty_cloud_has_no_points(reader):
    cloud = written(height=1)
    cloud.width = 0
    cloud.row_step = 0
    cloud.data = array("B")
    assert reader(cloud, "xyz").shape == (0,)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (
            lambda c: setattr(c, "data", array("B", c.data[:-1])),
            "63 bytes do not hold 2 x 2 points",
        ),
        (
            lambda c: setattr(c, "point_step", 2**32 - 1),
            "points have 4294967295 bytes, expected at most 65536",
        ),
        (lambda c: setattr(c, "row_step", 31), "do not hold 2 x 2 points"),
        (
            lambda c: setattr(c.fields[2], "offset", 13),
            "field y lies beyond its points of 16 bytes",
        ),
        (lambda c: setattr(c.fields[2], "datatype", 99), "field y lies beyond"),
        (lambda c: setattr(c.fields[2], "name", "why"), "fields z, x, why, ring; y is missing"),
    ],
)
def test_what_does_not_fit_is_refused(reader, spoil, told):
    cloud = written()
    spoil(cloud)
    with pytest.raises(SensorMessageError, match=told):
        reader(cloud, "xyz")
