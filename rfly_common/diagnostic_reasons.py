# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Codes for what nodes report on `/diagnostics`: sentences are for people, reasons for programs.

A status carries its reasons as values: `reason` and, where the reason is about something,
`subject`. The second reason is in `reason_2` and `subject_2`, and so on.
`RecentFaults` keeps what is told while it goes on. No ROS.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

SHOWN_S = 5.0
"""Time that a fault lasts after it was last seen, s."""
MOST_OF_KIND = 10
"""Faults of one kind that are told."""
MOST_FAULTS = 40
"""Faults that are told; a sender who invents kinds or subjects fills neither memory nor log."""
MOST_LISTED = 20
"""Names in a value of a status."""
LONGEST_TEXT = 300
"""Characters of a fault's text and subject: they may quote a message."""
_VALUES = re.compile(r"'[^']*'|\b(?:nan|inf)\b|\d[\w.+-]*|[^\w']+")
"""Parts of a sentence that differ from one message to the next, and what separates words."""


class Reason(str, Enum):
    """Reason of a status. Values are stable; a subject is empty unless it is described here."""

    OTHER = "other"
    """Explained by the message only."""

    # --- what a node waits for
    NO_STATES = "no_states"
    """No vehicle states arrive. Subject: seconds since the last ones, empty before the first."""
    NO_TERRAIN_MAP = "no_terrain_map"
    """No terrain_map has arrived yet."""
    NO_MAP_LOADED = "no_map_loaded"
    """terrain_node has no map to serve. Subject: the error of the last load."""
    CLOCK_STOPPED = "clock_stopped"
    """The simulated clock does not move. Subject: for how long, s."""
    CLOCK_SET_BACK = "clock_set_back"
    """A source's stamps went back, and it started anew. Subject: the topic, with the source."""

    # --- what was given at the start
    UNKNOWN_PARAMETER = "unknown_parameter"
    """A parameter given at the start that the node does not have. Subject: its name."""

    # --- connections
    PEER_MISMATCH = "peer_mismatch"
    """Type or QoS of a topic's ends differ. Subject: topic, publisher, subscriber, with spaces."""
    WINDOW_REFUSED = "window_refused"
    """No program listens where datagrams are sent. Subject: address and port."""
    WINDOW_UNREACHABLE = "window_unreachable"
    """No machine answers where datagrams are sent. Subject: address and port."""
    FEEDBACK_PORT_TAKEN = "feedback_port_taken"
    """Another program holds the port for RflySim3D's answers. Subject: the port."""
    NO_SENSOR_DATA = "no_sensor_data"
    """Nothing arrives from one of RflySim3D's sensors. Subject: the port."""
    NO_COPTERSIM_DATA = "no_coptersim_data"
    """No state of a vehicle arrives from CopterSim. Subject: the port."""

    # --- why input was dropped; these are names of counters, too
    NOT_FINITE = "not_finite"
    """A number is NaN or infinite. Subject: the topic."""
    BAD_QUATERNION = "bad_quaternion"
    """An orientation is not of length 1. Subject: the topic."""
    UNKNOWN_FRAME = "unknown_frame"
    """No transform connects the frame to a world frame. Subject: the topic."""
    INCONSISTENT = "inconsistent"
    """The fields of a message contradict each other. Subject: the topic."""
    STALE = "stale"
    """A stamp is not newer than the last. Subject: the topic, with the source of a fleet."""
    TOO_OLD = "too_old"
    """A stamp is older than `max_age`. Subject: the topic, with the source of a fleet."""
    CONFIGURED = "configured"
    """A parameter gives the id to a separate topic. Subject: the id."""
    OTHER_SOURCE = "other_source"
    """Another source publishes the id already. Subject: the id."""
    WRONG_ID = "wrong_id"
    """A robot's message has the id of another vehicle. Subject: the topic."""
    BAD_ID = "bad_id"
    """An id is below 1. Subject: the topic."""
    BAD_SCALE = "bad_scale"
    """A vehicle's scale is outside of its limits. Subject: the topic."""
    TOO_FAR = "too_far"
    """A position is too far from the map's origin. Subject: the topic."""
    TOO_MANY = "too_many"
    """More vehicles than can be tested. Subject: the topic."""
    REFUSED_OBJECTS = "refused_objects"
    """A message of placed objects cannot be used. Subject: the topic."""


class Notice(NamedTuple):
    """A sentence for people with its code for programs."""

    text: str
    reason: Reason = Reason.OTHER
    subject: str = ""

    def __str__(self) -> str:
        return self.text


def listed(names: Sequence[str], most: int = MOST_LISTED) -> str:
    """Return names for a value of a status; of more than `most` only the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def reason_values(notices: Iterable[Notice]) -> dict[str, str]:
    """Return a status' values for the reasons of its notices."""
    values = {}
    for number, notice in enumerate(notices, 1):
        suffix = "" if number == 1 else f"_{number}"
        values[f"reason{suffix}"] = notice.reason.value
        if notice.subject:
            values[f"subject{suffix}"] = notice.subject
    return values


def reasons_in(values: Mapping[str, str]) -> list[tuple[Reason, str]]:
    """Return reasons and subjects from the values of a status; an unknown code counts as OTHER."""
    found = []
    suffix = ""
    while f"reason{suffix}" in values:
        code = values[f"reason{suffix}"]
        reason = Reason(code) if code in _CODES else Reason.OTHER
        found.append((reason, values.get(f"subject{suffix}", "")))
        suffix = f"_{len(found) + 1}"
    return found


_CODES = frozenset(reason.value for reason in Reason)


class RecentFaults:
    """Faults by kind, subject and sentence, whose values may change; each with its newest text.

    `clock`: steady time, s.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._faults: dict[tuple[str, str, str], tuple[float, Notice]] = {}

    def begin(self, kind: str, notice: Notice) -> bool:
        """Note that a fault was seen. Return whether it is new, so that it should be logged."""
        now = self._clock()
        notice = notice._replace(
            text=" ".join(notice.text.split())[:LONGEST_TEXT], subject=notice.subject[:LONGEST_TEXT]
        )
        key = (kind, notice.subject, _VALUES.sub("", notice.text))
        seen, _ = self._faults.get(key, (-SHOWN_S, None))
        is_new = now - seen >= SHOWN_S
        if is_new:
            self._forget(now)
            of_kind = sum(other == kind for other, _, _ in self._faults)
            if of_kind >= MOST_OF_KIND or len(self._faults) >= MOST_FAULTS:
                return False

        self._faults[key] = now, notice
        return is_new

    def notices(self) -> list[Notice]:
        """Return the faults that go on, the oldest first."""
        self._forget(self._clock())
        return [notice for _, notice in self._faults.values()]

    def _forget(self, now: float) -> None:
        self._faults = {
            key: fault for key, fault in self._faults.items() if now - fault[0] < SHOWN_S
        }
