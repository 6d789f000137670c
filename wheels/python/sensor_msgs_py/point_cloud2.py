# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""PointCloud2 to and from NumPy arrays, with the functions of ROS's sensor_msgs_py."""

from __future__ import annotations

import sys
from array import array
from collections import namedtuple
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured, unstructured_to_structured
from numpy.typing import NDArray
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Header

DUMMY_FIELD_PREFIX = "unnamed_field"
_FORMATS = {
    PointField.INT8: "i1",
    PointField.UINT8: "u1",
    PointField.INT16: "i2",
    PointField.UINT16: "u2",
    PointField.INT32: "i4",
    PointField.UINT32: "u4",
    PointField.FLOAT32: "f4",
    PointField.FLOAT64: "f8",
}
"""NumPy's types by the datatype of a PointField."""


def dtype_from_fields(fields: Iterable[PointField], point_step: int | None = None) -> np.dtype[Any]:
    """Return NumPy's type of a point; a field of two numbers becomes `name_0` and `name_1`."""
    names: list[str] = []
    formats = []
    offsets = []
    for number, field in enumerate(fields):
        name = field.name or f"{DUMMY_FIELD_PREFIX}_{number}"
        kind = np.dtype(_FORMATS[field.datatype])
        assert field.count > 0, f"field {name!r}: count 0, expected at least 1"
        for part in range(field.count):
            names.append(name if field.count == 1 else f"{name}_{part}")
            formats.append(kind.str)
            offsets.append(field.offset + part * kind.itemsize)
    assert len(set(names)) == len(names), "two fields have one name"

    layout: dict[str, Any] = {"names": names, "formats": formats, "offsets": offsets}
    if point_step is not None:
        layout["itemsize"] = point_step
    return np.dtype(layout)


def read_points(
    cloud: PointCloud2,
    field_names: Sequence[str] | None = None,
    skip_nans: bool = False,
    uvs: Iterable[int] | None = None,
    reshape_organized_cloud: bool = False,
) -> NDArray[Any]:
    """Return the points as a structured array, row by row.

    `field_names`: fields to read, all by default. `skip_nans`: leave out points with a NaN, unless
    the cloud is dense. `uvs`: places of the points to return. `reshape_organized_cloud`: two axes,
    width first, as in ROS's own function.
    """
    assert isinstance(cloud, PointCloud2), "cloud is not a sensor_msgs.msg.PointCloud2"
    kind = dtype_from_fields(cloud.fields, cloud.point_step)
    points = np.ndarray((cloud.width * cloud.height,), kind, cloud.data)
    if field_names is not None:
        missing = [name for name in field_names if name not in kind.names]
        assert not missing, f"the cloud has no field {', '.join(missing)}"
        points = points[list(field_names)]
    if cloud.is_bigendian != (sys.byteorder == "big"):
        points = points.byteswap()

    # choose points
    if skip_nans and not cloud.is_dense:
        bad = [np.isnan(points[name]) for name in points.dtype.names]
        points = points[~np.any(bad, axis=0)]
    if uvs is not None:
        points = points[np.fromiter(uvs, int)]

    if reshape_organized_cloud and cloud.height > 1:
        points = points.reshape(cloud.width, cloud.height)
    return points


def read_points_numpy(
    cloud: PointCloud2,
    field_names: Sequence[str] | None = None,
    skip_nans: bool = False,
    uvs: Iterable[int] | None = None,
    reshape_organized_cloud: bool = False,
) -> NDArray[Any]:
    """Return the points as a plain array, (n, fields), of fields that have one datatype."""
    kinds = {
        field.datatype for field in cloud.fields if field_names is None or field.name in field_names
    }
    assert len(kinds) <= 1, "the fields have different datatypes: use read_points"
    return structured_to_unstructured(
        read_points(cloud, field_names, skip_nans, uvs, reshape_organized_cloud)
    )


def read_points_list(
    cloud: PointCloud2,
    field_names: Sequence[str] | None = None,
    skip_nans: bool = False,
    uvs: Iterable[int] | None = None,
) -> list[Any]:
    """Return the points as a list of named tuples."""
    names = [field.name for field in cloud.fields] if field_names is None else field_names
    point = namedtuple("Point", names)  # type: ignore[misc]
    return [point._make(row) for row in read_points(cloud, names, skip_nans, uvs)]


def create_cloud(
    header: Header,
    fields: Sequence[PointField],
    points: Iterable[Any],
    point_step: int | None = None,
) -> PointCloud2:
    """Return a cloud of points: rows of numbers in the order of the fields, or an array.

    An array is structured, or plain with fields of one datatype. The first axis of a structured
    array with two is the width. The cloud is marked as not dense, as by ROS's own function.
    """
    kind = dtype_from_fields(fields, point_step)
    if not isinstance(points, np.ndarray):
        table = np.array([tuple(row) for row in points], kind)
    elif points.dtype.names is None:
        table = unstructured_to_structured(points, kind)
    else:
        assert points.dtype == kind, f"the array's type is {points.dtype}, the fields' {kind}"
        table = points
    assert table.ndim <= 2, f"the points have {table.ndim} axes, expected one or two"

    cloud = PointCloud2(
        header=header,
        height=table.shape[1] if table.ndim == 2 else 1,
        width=table.shape[0],
        is_dense=False,
        is_bigendian=sys.byteorder == "big",
        fields=fields,
        point_step=table.dtype.itemsize,
        row_step=table.dtype.itemsize * table.shape[0],
    )
    data = array("B")
    data.frombytes(table.tobytes())
    cloud.data = data
    return cloud


def create_cloud_xyz32(header: Header, points: Iterable[Any]) -> PointCloud2:
    """Return a cloud of points x, y, z in float32."""
    fields = [
        PointField(name=name, offset=4 * place, datatype=PointField.FLOAT32, count=1)
        for place, name in enumerate("xyz")
    ]
    return create_cloud(header, fields, points)
