# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Waypoints of a planned `nav_msgs/Path`, from arrays or from the YAML of `ros2 topic echo`."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rfly_common.arrays import Floats
from rfly_common.config.marked_yaml import Document, parse_yaml
from rfly_common.errors import ConfigError, Key
from rfly_common.frames import ned_to_enu

ENU_FRAME = "map"
NED_FRAME = "map_ned"
SAME_POINT = 1e-3
"""Distance below which a point repeats the one before, m.

Such points are left out: recorders write them while a robot stands.
"""
MAX_COORDINATE = 1e7
"""Largest coordinate, m."""
ALONG = math.cos(math.radians(30.0))
"""Cosine of the largest angle between heading and motion for a pose that points along the path.

The same holds against the path.
"""
_SEPARATOR = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)


def waypoints(position: ArrayLike, frame_id: str = ENU_FRAME) -> Floats:
    """Return the waypoints (n, 3), ENU, m, of poses at positions (n, 3).

    The frame is `map`, also written "", or `map_ned`. Of points in one place, seen from above, one
    stays, at the highest of their heights: a path by arc length can't go straight up. Raises
    ConfigError for another frame and for points that are not finite.
    """
    points = np.asarray(position, dtype=float).reshape(-1, 3)
    if frame_id == NED_FRAME:
        points = np.asarray(ned_to_enu(points), float)
    elif frame_id not in ("", ENU_FRAME):
        raise ConfigError(f"{frame_id!r} is neither {ENU_FRAME} nor {NED_FRAME}", key="frame_id")
    if not (np.isfinite(points).all() and np.abs(points).max(initial=0.0) <= MAX_COORDINATE):
        raise ConfigError(f"a point is not within {MAX_COORDINATE:g} m of the origin", key="poses")
    return without_repeats(points)


def without_repeats(points: Floats) -> Floats:
    """Return points (n, 2) or (n, 3) without those that repeat the one before, seen from above.

    See SAME_POINT.
    """
    if len(points) < 2:
        return points
    apart = np.hypot(*np.diff(points[:, :2], axis=0).T) > SAME_POINT
    first = np.flatnonzero(np.concatenate([[True], apart]))
    distinct = points[first]
    if points.shape[1] == 3:
        distinct[:, 2] = np.maximum.reduceat(points[:, 2], first)
    return distinct


class Section(NamedTuple):
    """Poses of a path from `first` to `last`, both included, that are driven in one direction."""

    first: int
    last: int
    backward: bool


def sections(points: Floats, heading: Floats | None) -> list[Section]:
    """Return the sections of a path (n, 2) or (n, 3) that are driven forwards and backwards.

    A nav_msgs/Path says this only by its headings (n,), rad: it leads backwards where its poses
    point against their motion, as Nav2's hybrid planner writes it. This counts if all poses point
    along the path or against it, within ALONG; otherwise, and with None, the path is one section
    driven forwards.
    """
    whole = [Section(0, len(points) - 1, False)]
    if heading is None or len(points) < 2:
        return whole

    # headings along the motion, or against it
    dx, dy = np.diff(points[:, :2], axis=0).T
    middle = heading[:-1] + 0.5 * (np.mod(np.diff(heading) + math.pi, 2.0 * math.pi) - math.pi)
    along = np.cos(middle) * dx + np.sin(middle) * dy
    length = np.hypot(dx, dy)
    moves = length > SAME_POINT
    if not (moves.any() and (np.abs(along[moves]) >= ALONG * length[moves]).all()):
        return whole

    # neighbours of one direction; a step without length belongs to the one before
    steps = np.flatnonzero(moves)
    before = np.maximum(np.searchsorted(steps, np.arange(len(length)), side="right") - 1, 0)
    parts = []
    first = 0
    for backward, run in itertools.groupby((along[steps[before]] < 0.0).tolist()):
        last = first + len(list(run))
        parts.append(Section(first, last, backward))
        first = last
    return parts


def parse_nav_path(text: str, file: str) -> Floats:
    """Return the waypoints (n, 3), ENU, of the last message that `ros2 topic echo` printed.

    `file` names the text in errors. Raises ConfigError with file and line.
    """
    last = None
    for document in _documents(text, file):
        last = document
    if last is None:
        raise ConfigError(f"{file}: the file holds no message")
    return _points(last)


def _documents(text: str, file: str) -> Iterator[Document]:
    """Yield the documents of a YAML stream, with the line numbers of the whole text."""
    begin = 0
    for end in [*_SEPARATOR.finditer(text), None]:
        part = text[begin : end.start() if end else len(text)]
        if part.strip():
            yield parse_yaml("\n" * text.count("\n", 0, begin) + part, file)
        begin = end.end() if end else begin


def _points(document: Document) -> Floats:
    """Return the waypoints of one message. Raises ConfigError with the line of what is wrong."""

    def value_at(path: tuple[Key, ...], kinds: type | tuple[type, ...], expected: str) -> Any:
        value: Any = document.value
        for key in path:
            if isinstance(value, list) and isinstance(key, int):
                value = value[key]
            else:
                value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise document.error(path, f"expected {expected}")
        return value

    frame = value_at(("header", "frame_id"), str, "a nav_msgs/Path with the name of its frame")
    poses = value_at(("poses",), list, "a nav_msgs/Path with its poses")
    points = np.empty((len(poses), 3))

    for i, pose in enumerate(poses):
        if isinstance(pose, str):
            text = (
                "the message was cut short when it was printed; ros2 topic echo --full-length "
                "prints all of it"
            )
            raise document.error(("poses", i), text)

        # a pose may name its own frame, which must be the path's
        header = pose.get("header", {}) if isinstance(pose, dict) else {}
        if isinstance(header, dict) and header.get("frame_id", "") not in ("", frame):
            text = f"{header['frame_id']!r} is not the path's frame {frame!r}"
            raise document.error(("poses", i, "header", "frame_id"), text)

        for axis, letter in enumerate("xyz"):
            number_path = ("poses", i, "pose", "position", letter)
            points[i, axis] = value_at(number_path, (int, float), "a number")

    try:
        return waypoints(points, frame)
    except ConfigError as error:
        path = ("header", "frame_id") if error.key == ("frame_id",) else ("poses",)
        raise document.error(path, error.text) from None
