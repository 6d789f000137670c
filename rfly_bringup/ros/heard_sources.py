"""Who tells of vehicles: messages of several topics, summed up by source."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_bringup.doctor.snapshot import Source

RATE_OVER_S = 2.0
"""messages of this time back make the rate"""


@dataclass
class _Heard:
    frame_id: str = ""
    ids: set[int] = field(default_factory=set)
    not_finite: set[int] = field(default_factory=set)
    times: list[float] = field(default_factory=list)
    """steady clock, s"""
    last_ids: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))


class HeardSources:
    """By topic and source."""

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str], _Heard] = {}

    def hear_states(self, topic: str, message: Any) -> None:
        """A VehicleStateArray."""
        heard = self._arrived(topic, message.source, message.header.frame_id)
        ids = np.asarray(message.id)
        if not np.array_equal(ids, heard.last_ids):  # the ids of a fleet are always the same
            heard.last_ids = ids.copy()
            heard.ids.update(ids.tolist())
        position, orientation = np.asarray(message.position), np.asarray(message.orientation)
        if len(position) == 3 * len(ids) and len(orientation) == 4 * len(ids):
            finite = np.isfinite(position.reshape(-1, 3)).all(1) & np.isfinite(orientation.reshape(-1, 4)).all(1)
            heard.not_finite.update(ids[~finite].tolist())

    def hear_robot(self, topic: str, name: str, vehicle_id: int, message: Any) -> None:
        """A PoseStamped, Odometry or VehicleState of a foreign robot."""
        heard = self._arrived(topic, name, message.header.frame_id)
        heard.ids.add(vehicle_id)
        if hasattr(message, "pose"):
            pose = getattr(message.pose, "pose", message.pose)
            p, q = pose.position, pose.orientation
            numbers = [p.x, p.y, p.z, q.x, q.y, q.z, q.w]
        else:
            numbers = [*message.position, *message.orientation]
        if not np.isfinite(numbers).all():
            heard.not_finite.add(vehicle_id)

    def sources(self, now: float) -> tuple[Source, ...]:
        """All of them; `now` on the steady clock, s."""
        found = []
        for (topic, name), heard in sorted(self._heard.items()):
            recent = [at for at in heard.times if at > now - RATE_OVER_S]
            rate = (len(recent) - 1) / (recent[-1] - recent[0]) if len(recent) > 1 else len(recent) / RATE_OVER_S
            found.append(
                Source(
                    topic,
                    name,
                    frozenset(heard.ids),
                    rate,
                    now - heard.times[-1],
                    heard.frame_id,
                    frozenset(heard.not_finite),
                )
            )
        return tuple(found)

    def frames(self) -> list[tuple[str, str]]:
        """Topic and frame id of each."""
        return [(topic, heard.frame_id) for (topic, _), heard in sorted(self._heard.items())]

    def _arrived(self, topic: str, name: str, frame_id: str) -> _Heard:
        heard = self._heard.setdefault((topic, name), _Heard())
        now = time.monotonic()
        heard.frame_id = frame_id
        heard.times = [at for at in heard.times[-1000:] if at > now - RATE_OVER_S] + [now]
        return heard
