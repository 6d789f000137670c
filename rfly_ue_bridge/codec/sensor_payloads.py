# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Payloads of RflySim3D's sensors: pictures, clouds, distances and detections, both directions.

`decode_payload` reads what the fragments of a frame make together, `encode_…` write it. Nothing is
taken from what was requested that the bytes themselves show: jpeg and png are known by their first
bytes, the three generations of clouds by their length.

A frame is cut into datagrams of at most 60,000 bytes, each behind a header of 24 bytes (frames are
told apart by their time) or of 32 bytes (with a frame number). The first number tells which. The
datagrams do not say which sensor they are from: the port is the only identity.
"""

from __future__ import annotations

import io
import math
import struct
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile

from rfly_common.errors import PacketError
from rfly_common.files import encoded_picture
from rfly_ue_bridge.codec.packets import Field, PacketType
from rfly_ue_bridge.codec.sensor_requests import VisionSensor

MAX_PIXELS = 8192 * 8192
UNREQUESTED_PIXELS = 4096 * 4096
"""Pixels of a picture that may be larger than requested."""
MAX_SCANS = 64
"""Scans of a jpeg: a progressive one has about ten, and each costs as much as all pixels."""
MAX_POINTS = 10_000_000
NO_DEPTH = 65535
"""Count of a pixel without depth."""
METRES_PER_COUNT = 0.001
"""Depth of one count, m, if otherParams[2] is 0."""
INT16_SCALE = 32767
"""Number of an int16 cloud that stands for the greatest range."""

MAX_FRAGMENT_BYTES = 60_000
"""Largest part of a frame that RflySim3D puts into one datagram, bytes."""
MAX_FRAGMENTS = 1_000
"""Most fragments of a frame that are accepted: 60 MB."""

_CHECKSUM = Field("checksum", "i")
_PLACE = (
    Field("length", "i", "bytes of this datagram with its header"),
    Field("index", "i", "0-based"),
    Field("count", "i", "fragments of the frame"),
)
_TIME = Field("time", "d", "s of simulation")

SENSOR_FRAGMENT_OLD = PacketType(
    "SensorFragment (old)", 24, (1234567890,), (_CHECKSUM, *_PLACE, _TIME)
)
"""Header of 24 bytes: fragments with the same time make a frame."""
SENSOR_FRAGMENT = PacketType(
    "SensorFragment",
    32,
    (1234567893,),
    (_CHECKSUM, *_PLACE, Field("frame", "i"), Field("reserved", "i", "0"), _TIME),
)
"""Header of 32 bytes: fragments with the same frame number and time make a frame."""

_HEADERS = {header.checksums[0]: header for header in (SENSOR_FRAGMENT_OLD, SENSOR_FRAGMENT)}


@dataclass(frozen=True)
class Fragment:
    """One datagram of a sensor's data."""

    length: int
    """Length that the header states, bytes."""
    index: int
    count: int
    frame: int | None
    """Number of the frame, None behind a header of 24 bytes."""
    time: float
    """Time of the frame, s of simulation."""
    payload: bytes


def read_fragment(datagram: bytes) -> Fragment:
    """Return the fragment in a datagram, whatever length its header states.

    PacketError: `length` of a datagram without room for a header, `checksum`, or `header` of an
    impossible place or time.
    """
    if len(datagram) < SENSOR_FRAGMENT_OLD.size:
        raise PacketError("length", f"{len(datagram)} bytes, a fragment has at least 24")
    checksum = SENSOR_FRAGMENT_OLD.checksum_struct.unpack_from(datagram)[0]
    header = _HEADERS.get(checksum)
    if header is None:
        expected = " or ".join(map(str, _HEADERS))
        raise PacketError("checksum", f"checksum {checksum}, a fragment has {expected}")
    if len(datagram) < header.size:
        raise PacketError("length", f"{len(datagram)} bytes, the header has {header.size}")

    _, length, index, count, *numbers = header.struct.unpack_from(datagram)
    time = numbers[-1]
    frame = numbers[0] if header is SENSOR_FRAGMENT else None
    if not (0 <= index < count <= MAX_FRAGMENTS and math.isfinite(time)):
        raise PacketError(
            "header",
            f"fragment {index} of {count} at {time} s, expected 0 to {MAX_FRAGMENTS - 1} "
            "and a finite time",
        )
    return Fragment(length, index, count, frame, time, datagram[header.size :])


def encode_fragments(payload: bytes, time: float, frame: int | None = None) -> list[bytes]:
    """Return the datagrams of a frame at a time, s of simulation.

    With a frame number (int32) they bear the header of 32 bytes, else that of 24.
    """
    header = SENSOR_FRAGMENT_OLD if frame is None else SENSOR_FRAGMENT
    numbers = (time,) if frame is None else (frame, 0, time)
    starts = range(0, max(len(payload), 1), MAX_FRAGMENT_BYTES)

    datagrams = []
    for index, start in enumerate(starts):
        part = payload[start : start + MAX_FRAGMENT_BYTES]
        place = (header.size + len(part), index, len(starts))
        datagrams.append(header.pack_flat(*place, *numbers) + part)
    return datagrams


class Content(Enum):
    """What a sensor's payload holds."""

    BGR = "bgr8"
    GREY = "mono8"
    DEPTH = "mono16"
    CLOUD = "cloud"
    DEPTH_CLOUD = "depth cloud"
    RANGE = "range"
    BOXES = "boxes"
    TARGETS = "targets"
    BYTES = "bytes"
    """A layout that is not public."""


class SensorType(NamedTuple):
    """A kind of RflySim3D's sensors."""

    name: str
    topic: str
    """Last part of the topic's name in RflySim's SDK; "" if the SDK has none."""
    content: Content
    max_range: float = 0.0
    """Greatest range if otherParams[0] is 0, m; 0 if it must be given."""


SENSOR_TYPES = {
    1: SensorType("RGB camera", "img_rgb", Content.BGR),
    2: SensorType("depth camera", "img_depth", Content.DEPTH),
    3: SensorType("grey camera", "img_gray", Content.GREY),
    4: SensorType("segmentation camera", "img_Segmentation", Content.BGR),
    5: SensorType("range finder", "range", Content.RANGE, 200.0),
    6: SensorType("sound", "", Content.BYTES),
    7: SensorType("depth cloud", "Depth_Cloud", Content.DEPTH_CLOUD),
    8: SensorType("fisheye camera", "fisheye", Content.BGR),
    9: SensorType("gimbal camera", "img_cine", Content.BGR),
    10: SensorType("optical flow", "", Content.BYTES),
    20: SensorType("lidar, own axes", "vehicle_lidar", Content.CLOUD, 200.0),
    21: SensorType("lidar, world axes", "global_lidar", Content.CLOUD, 200.0),
    22: SensorType("Livox Mid-40", "livox_lidar", Content.CLOUD, 600.0),
    23: SensorType("Livox Mid-360", "mid360_lidar", Content.CLOUD, 100.0),
    30: SensorType("detector", "detections", Content.BOXES),
    31: SensorType("radar", "targets", Content.TARGETS),
    40: SensorType("infrared camera", "img_Infrared_Gray", Content.GREY),
    41: SensorType("infrared camera, colours", "img_Infrared", Content.BGR),
}
"""Kinds of sensors by TypeID."""
_UNKNOWN = SensorType("unknown", "", Content.BYTES)

RANGE = np.dtype(
    [
        ("distance", "<f4"), ("copter_id", "<i4"), ("origin", "<f4", 3), ("euler", "<f4", 3),
        ("impact", "<f4", 3), ("box_center", "<f4", 3),
    ]
)  # fmt: skip
"""Record of a range finder, 56 bytes: m, and angles whose unit is not documented."""
BOXES = np.dtype([("copter_id", "<i4"), ("score", "<f4"), ("min", "<f4", 2), ("max", "<f4", 2)])
"""Box of a vehicle in a detector's picture, 24 bytes: corners x, y in pixels."""
TARGETS = np.dtype([("copter_id", "<i4"), ("position", "<f4", 3)])
"""Target of a radar, 16 bytes: m, in axes that are not documented."""

_RECORDS = {Content.BOXES: BOXES, Content.TARGETS: TARGETS}
_PICTURES: dict[Content, tuple[tuple[int, ...], np.dtype[Any], int]] = {
    Content.BGR: ((3,), np.dtype(np.uint8), cv2.IMREAD_COLOR),
    Content.GREY: ((), np.dtype(np.uint8), cv2.IMREAD_GRAYSCALE),
    Content.DEPTH: ((), np.dtype("<u2"), cv2.IMREAD_UNCHANGED),
}
"""Shape of a pixel, its number, and how OpenCV reads it from a file."""

_JPEG = b"\xff\xd8\xff"
_JPEG_END = b"\xff\xd9"
_JPEG_SCAN = b"\xff\xda"
_PNG = b"\x89PNG\r\n\x1a\n"
_PNG_END = b"IEND\xaeB`\x82"
_END_WITHIN = 64
"""A file's end mark lies within this number of last bytes."""

_POSE = struct.Struct("<6f")
_COUNT = struct.Struct("<i")
_FRAME = struct.Struct("<2i")
_CLOUD_0 = _POSE.size + _COUNT.size
_CLOUD_B = _FRAME.size + _CLOUD_0


@dataclass(frozen=True)
class SensorData:
    """What a payload holds, as arrays.

    | sensor | `data` |
    | --- | --- |
    | colour cameras | (height, width, 3) uint8, BGR |
    | grey cameras | (height, width) uint8 |
    | depth camera | (height, width) uint16, counts; 65535 is no value |
    | lidars | (n, 4) float32: x y z in m, and seg |
    | depth cloud | (n, 3) float32, m |
    | range finder | record () of `RANGE` |
    | detector, radar | records (n,) of `BOXES`, `TARGETS` |
    | others | (n,) uint8, the bytes |
    """

    data: NDArray[Any]
    form: str
    """jpeg, png or raw for pictures, 0, A or B for clouds (their generation), else record."""
    pose: NDArray[np.float32] | None = None
    """Pose of a cloud's sensor, (6,): x y z in m, roll pitch yaw in rad."""


def sensor_type(type_id: int) -> SensorType:
    """Return the kind of a TypeID; an unknown one has plain bytes."""
    return SENSOR_TYPES.get(type_id, _UNKNOWN)


def max_range(sensor: VisionSensor) -> float:
    """Return the greatest range, m, which is also the scale of int16 clouds; 0 if it is unknown."""
    return sensor.parameters[0] or sensor_type(sensor.type_id).max_range


CLOUD_FIELDS = ("x", "y", "z", "seg")
"""Columns of a cloud; some clouds lack the last one."""
_INFRARED = 1
"""Radiation of a sensor_msgs/Range."""


def range_fields(record: Any, sensor: VisionSensor) -> dict[str, Any]:
    """Return the fields of a sensor_msgs/Range; at the greatest range nothing was hit: inf.

    REP 117 has it so.
    """
    longest = max_range(sensor)
    distance = float(record["distance"])
    hit = math.inf if distance >= longest else distance
    return {"radiation_type": _INFRARED, "max_range": longest, "range": hit}


def decode_payload(sensor: VisionSensor, payload: bytes) -> SensorData:
    """Return the content of a sensor's payload.

    PacketError: `undecodable` if the bytes are nothing that this sensor sends.
    """
    content = sensor_type(sensor.type_id).content
    if content in _PICTURES:
        return _decode_picture(sensor, content, payload)
    if content in (Content.CLOUD, Content.DEPTH_CLOUD):
        return _decode_cloud(sensor, content, payload)
    if content in _RECORDS:
        return SensorData(_decode_records(payload, _RECORDS[content]), "record")
    if content is Content.RANGE:
        if len(payload) != RANGE.itemsize:
            raise _undecodable(f"{len(payload)} bytes, a range finder sends {RANGE.itemsize}")
        return SensorData(np.frombuffer(payload, RANGE)[0], "record")
    return SensorData(np.frombuffer(payload, np.uint8), "record")


# --- pictures


def picture_form(sensor: VisionSensor, payload: bytes) -> str:
    """Return jpeg, png, or raw for pixels of the requested size.

    A file's end mark must be there, too. PacketError: `undecodable` for anything else.
    """
    end = payload[-_END_WITHIN:]
    if payload.startswith(_JPEG) and _JPEG_END in end:
        return "jpeg"
    if payload.startswith(_PNG) and _PNG_END in end:
        return "png"

    pixel, number, _ = _PICTURES[sensor_type(sensor.type_id).content]
    size = sensor.width * sensor.height * number.itemsize * (pixel[0] if pixel else 1)
    if len(payload) == size and size:
        return "raw"
    raise _undecodable(
        f"{len(payload)} bytes, expected a jpeg, a png, or {size} bytes of "
        f"{sensor.width} x {sensor.height} pixels"
    )


def picture_size(sensor: VisionSensor, payload: bytes, form: str) -> tuple[int, int]:
    """Return width and height of a picture of a form, before anything is decoded.

    PacketError: `undecodable` if its header is broken, or if decoding would take too much.
    """
    if form == "raw":
        return sensor.width, sensor.height

    # the plug-ins themselves: Image.open would print warnings for large pictures
    plug_in = JpegImageFile if form == "jpeg" else PngImageFile
    try:
        width, height = plug_in(io.BytesIO(payload)).size
    except Exception as error:  # noqa: BLE001  whatever a broken header makes Pillow raise
        raise _undecodable(f"{form} without a sound header: {error}") from None

    most = min(MAX_PIXELS, max(UNREQUESTED_PIXELS, sensor.width * sensor.height))
    if not 0 < width * height <= most:
        raise _undecodable(f"{form} of {width} x {height} pixels, at most {most:,}")
    if form == "jpeg" and payload.count(_JPEG_SCAN) > MAX_SCANS:
        raise _undecodable(f"jpeg of more than {MAX_SCANS} scans")
    return width, height


def _decode_picture(sensor: VisionSensor, content: Content, payload: bytes) -> SensorData:
    pixel, number, flag = _PICTURES[content]
    form = picture_form(sensor, payload)
    if form == "raw":
        shape = (sensor.height, sensor.width, *pixel)
        return SensorData(np.frombuffer(payload, number).reshape(shape), form)

    picture_size(sensor, payload, form)
    try:
        pixels = cv2.imdecode(
            np.frombuffer(payload, np.uint8), flag | cv2.IMREAD_IGNORE_ORIENTATION
        )
    except cv2.error as error:
        raise _undecodable(f"{form}: {error}") from error

    if pixels is None:
        raise _undecodable(f"{form} that OpenCV does not read")
    if pixels.dtype != number or pixels.shape[2:] != pixel:
        raise _undecodable(
            f"{form} of {pixels.dtype} and {pixels.shape[2:] or (1,)} channels, expected {number}"
        )
    return SensorData(pixels, form)


def depth_to_metres(counts: NDArray[np.uint16], sensor: VisionSensor) -> NDArray[np.float32]:
    """Return a depth camera's counts as m; NaN where there is no value (REP 118)."""
    scale = np.float32(sensor.parameters[2] or METRES_PER_COUNT)
    depth = counts * scale
    depth[counts == NO_DEPTH] = np.nan
    return depth


def depth_to_millimetres(counts: NDArray[np.uint16], sensor: VisionSensor) -> NDArray[np.uint16]:
    """Return a depth camera's counts as mm; 0 where there is no value (REP 118)."""
    scale = (sensor.parameters[2] or METRES_PER_COUNT) * 1000.0
    if scale == 1.0:
        return np.where(counts == NO_DEPTH, np.uint16(0), counts)
    millimetres = np.rint(counts * np.float32(scale))
    too_far = (counts == NO_DEPTH) | (millimetres > NO_DEPTH)
    return np.where(too_far, 0.0, millimetres).astype(np.uint16)


def encode_image(pixels: NDArray[Any], form: str = "jpeg", quality: int = 90) -> bytes:
    """Return the payload of a picture, (height, width) or (height, width, 3) BGR.

    `form` is jpeg, png or raw; uint16 pixels are depth and cannot be jpeg. Raise ConfigError for
    more rows or columns than the form holds.
    """
    if form == "raw":
        return np.ascontiguousarray(pixels, pixels.dtype.newbyteorder("<")).tobytes()
    if form not in ("jpeg", "png") or (form == "jpeg" and pixels.dtype != np.uint8):
        raise ValueError(f"form {form!r} of {pixels.dtype}, expected jpeg of uint8, png or raw")
    options = [cv2.IMWRITE_JPEG_QUALITY, quality] if form == "jpeg" else []
    return encoded_picture("jpg" if form == "jpeg" else "png", pixels, options)


# --- clouds


def _decode_cloud(sensor: VisionSensor, content: Content, payload: bytes) -> SensorData:
    generation, columns, start = _cloud_generation(content, payload)
    pose = np.frombuffer(payload, "<f4", 6, start - _CLOUD_0)
    if generation == "B":
        points = np.frombuffer(payload, "<f4", offset=start).reshape(-1, columns)
        return SensorData(points, generation, pose)

    scale = max_range(sensor)
    if not scale > 0.0:
        raise _undecodable("an int16 cloud has no scale without otherParams[0], the range in m")
    counts = np.frombuffer(payload, "<i2", offset=start).reshape(-1, columns)
    points = counts * np.float32(scale / INT16_SCALE)
    if columns == 3 and content is Content.CLOUD:
        points = np.column_stack([points, np.zeros(len(points), np.float32)])
    return SensorData(points, generation, pose)


def _cloud_generation(content: Content, payload: bytes) -> tuple[str, int, int]:
    """Return the generation, the numbers of a point, and where the points begin."""
    forms = [("0", 3, 2, _CLOUD_0)]
    if content is Content.CLOUD:
        forms += [("A", 4, 2, _CLOUD_0), ("B", 4, 4, _CLOUD_B)]

    fitting = []
    for generation, columns, size, start in forms:
        if len(payload) < start:
            continue
        count = _COUNT.unpack_from(payload, start - _COUNT.size)[0]
        if 0 <= count <= MAX_POINTS and len(payload) == start + columns * size * count:
            fitting.append((generation, columns, start))

    if not fitting or (len(fitting) > 1 and len(payload) != _CLOUD_0):
        raise _undecodable(f"{len(payload)} bytes are no cloud: they do not fit their number")
    return fitting[-1]


def encode_cloud(
    points: ArrayLike,
    scale: float | None = None,
    pose: ArrayLike = (0.0,) * 6,
    *,
    copter_id: int = 0,
    world_pose: bool = False,
) -> bytes:
    """Return the payload of a cloud.

    With a `scale`, the range in m, points (n, 4), x y z seg, become generation A and points (n, 3)
    a depth cloud (generation 0), both int16; without it points (n, 4) become generation B, float32.
    `pose` is x y z in m and roll pitch yaw in rad.
    """
    array = np.asarray(points, float)
    if array.ndim != 2 or array.shape[1] not in (3, 4) or (scale is None and array.shape[1] == 3):
        raise ValueError(f"points: shape {array.shape}, expected (n, 4), or (n, 3) with a scale")
    head = _POSE.pack(*np.asarray(pose, float)) + _COUNT.pack(len(array))
    if scale is None:
        return _FRAME.pack(copter_id, world_pose) + head + array.astype("<f4").tobytes()
    counts = np.rint(np.clip(array / scale, -1.0, 1.0) * INT16_SCALE)
    return head + counts.astype("<i2").tobytes()


# --- records


def _decode_records(payload: bytes, kind: np.dtype[Any]) -> NDArray[Any]:
    if len(payload) < _COUNT.size:
        raise _undecodable(f"{len(payload)} bytes, expected a number of records")
    count = _COUNT.unpack_from(payload)[0]
    if count < 0 or len(payload) != _COUNT.size + count * kind.itemsize:
        raise _undecodable(f"{len(payload)} bytes do not hold {count} records")
    return np.frombuffer(payload, kind, offset=_COUNT.size)


def encode_records(records: NDArray[Any]) -> bytes:
    """Return the payload of records (n,) of `BOXES` or `TARGETS`."""
    return _COUNT.pack(len(records)) + records.tobytes()


def _undecodable(text: str) -> PacketError:
    return PacketError("undecodable", text)
