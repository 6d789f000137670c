# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Clouds written byte by byte with struct."""

from __future__ import annotations

import struct
from array import array

import numpy as np
import pytest
from optional_parts import late_module

from rfly_common.errors import SensorMessageError

pytestmark = pytest.mark.ros

sensor_msgs = late_module("sensor_msgs.msg")
point_clouds = late_module("rfly_common.ros.sensor_messages")

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


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("padding", [0, 5])
def test_fields_are_read_row_by_row(order, padding):
    table = point_clouds.read_fields(written(order, padding=padding), ["x", "y", "z", "ring"])
    assert table.shape == (4,)
    got = np.array([[float(table[name][k]) for name in ("x", "y", "z", "ring")] for k in range(4)])
    assert np.array_equal(got, np.array(POINTS), equal_nan=True)


@pytest.mark.needs("sensor_msgs_py")
def test_the_stand_in_for_sensor_msgs_py_reads_the_usual_cloud():
    """The module is the real one on a machine with ROS."""
    from sensor_msgs_py.point_cloud2 import read_points

    table = read_points(written(), field_names=["x", "ring"])
    assert table["x"].tolist() == [1.0, 4.0, 7.5, -1.0]
    assert table["ring"].tolist() == [7, 8, 9, 10]


def test_an_empty_cloud_has_no_points():
    cloud = written(height=1)
    cloud.width = 0
    cloud.row_step = 0
    cloud.data = array("B")
    assert point_clouds.read_fields(cloud, "xyz").shape == (0,)


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
def test_what_does_not_fit_is_refused(spoil, told):
    cloud = written()
    spoil(cloud)
    with pytest.raises(SensorMessageError, match=told):
        point_clouds.read_fields(cloud, "xyz")


@pytest.mark.parametrize("count", [0, 1, 3, 2**32 - 1])
def test_of_a_field_the_first_value_counts_whatever_its_count(count):
    """Some drivers leave PointField.count at 0, which PCL takes as 1."""
    cloud = written()
    for field in cloud.fields:
        field.count = count
    table = point_clouds.read_fields(cloud, ["x", "ring"])
    assert table["x"].tolist() == [1.0, 4.0, 7.5, -1.0]
    assert table["ring"].tolist() == [7, 8, 9, 10]


@pytest.mark.parametrize(
    ("name", "offset", "kind"),
    [("rgb", 14, 7), ("", 0, 7), ("label", 2**32 - 1, 8), ("odd", 0, 99), ("x", 8, 7)],
)
def test_other_fields_are_not_looked_at(name, offset, kind):
    """A field beyond the point, without a name, of an unknown type, or a second x."""
    cloud = written()
    cloud.fields.append(sensor_msgs.PointField(name=name, offset=offset, datatype=kind, count=1))
    assert point_clouds.read_fields(cloud, "xyz")["x"].tolist() == [1.0, 4.0, 7.5, -1.0]


def test_a_cloud_of_one_row_needs_no_row_step():
    cloud = written(height=1)
    cloud.row_step = 0
    assert point_clouds.read_fields(cloud, "xyz")["x"].tolist() == [1.0, 4.0, 7.5, -1.0]
