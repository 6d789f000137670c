# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's mission protocol, the vehicle's side.

A transaction belongs to a system, a component and an address: several ground stations may have the
same ids. Its answers go to that address alone.

Missions are uploaded row by row, and sent back as they came. Fences and rally points are no
missions here: they are refused (MAV_MISSION_UNSUPPORTED).
https://mavlink.io/en/services/mission.html
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rfly_missions.mavlink.flight import FlightLogic
from rfly_missions.mavlink.mission_rows import MOST_ROWS, Refused, Row
from rfly_missions.mavlink.wire import Address, Peer, Send, Sender, load_dialect, peer_of

RETRY_S = 0.25
"""Time, s, after which a row is requested again (the protocol's recommendation for items)."""
TRIES = 12
"""Number of requests for a row."""


@dataclass
class _Upload:
    """An upload under way."""

    peer: Peer
    count: int
    asked_at: float
    """Wall time of the last request, s."""
    rows: list[Row] = field(default_factory=list)
    tries: int = 1
    """Number of requests for the next row."""


class MissionProtocol:
    """Answers to the messages of `HANDLED`; `flight` has the mission."""

    HANDLED = frozenset(
        {
            "MISSION_COUNT",
            "MISSION_ITEM",
            "MISSION_ITEM_INT",
            "MISSION_REQUEST_LIST",
            "MISSION_REQUEST",
            "MISSION_REQUEST_INT",
            "MISSION_CLEAR_ALL",
            "MISSION_ACK",
        }
    )

    def __init__(self, flight: FlightLogic, send: Send, report: Callable[[str], None]) -> None:
        """Start without an upload; `report` receives the reasons of refusals."""
        self._d = load_dialect()
        self._flight = flight
        self._send = send
        self._report = report
        self._upload: _Upload | None = None

    def handle(self, message: Any, now: float, address: Address) -> None:
        """Take one of HANDLED, for this vehicle; `address` is its sender's."""
        peer = peer_of(message, address)
        kind = message.get_type()
        if kind in ("MISSION_ITEM", "MISSION_ITEM_INT"):
            self._on_item(message, peer, now)
        elif kind == "MISSION_ACK":
            # before the last row an acknowledgement means that the other side gives up
            if self._upload is not None and self._upload.peer == peer:
                self._upload = None
        elif kind == "MISSION_CLEAR_ALL" and message.mission_type == self._d.MAV_MISSION_TYPE_ALL:
            self._begin(peer, 0, now)
        elif message.mission_type != self._d.MAV_MISSION_TYPE_MISSION:
            self._ack(peer, "MAV_MISSION_UNSUPPORTED", message.mission_type)
        elif kind == "MISSION_COUNT":
            self._begin(peer, message.count, now)
        elif kind == "MISSION_CLEAR_ALL":
            self._begin(peer, 0, now)
        elif kind == "MISSION_REQUEST_LIST":
            rows = len(self._flight.mission.rows)
            self._send(self._d.MAVLink_mission_count_message(*peer.ids, rows, 0), address)
        elif message.seq < len(self._flight.mission.rows):
            self._send(self._item_message(peer.ids, message.seq), address)
        else:
            self._ack(peer, "MAV_MISSION_INVALID_SEQUENCE")

    def tick(self, now: float) -> None:
        """Request missing rows again, and give up in the end."""
        upload = self._upload
        if upload is None or now - upload.asked_at < RETRY_S:
            return
        if upload.tries >= TRIES:
            self._upload = None
            self._ack(upload.peer, "MAV_MISSION_OPERATION_CANCELLED")
            self._report(f"Mission upload given up: no item {len(upload.rows)}")
            return

        upload.tries += 1
        self._ask(upload, now)

    def _begin(self, peer: Peer, count: int, now: float) -> None:
        is_busy = self._upload is not None and self._upload.peer != peer
        problem = self._flight.mission_error()
        if is_busy:
            problem = "Mission refused: another one is being uploaded"

        if problem:
            self._report(problem)
            self._ack(peer, "MAV_MISSION_DENIED")
        elif count > MOST_ROWS:
            self._ack(peer, "MAV_MISSION_NO_SPACE")
        elif count == 0:
            self._upload = None
            self._finish(peer, ())
        else:
            self._upload = _Upload(peer, count, now)
            self._ask(self._upload, now)

    def _ask(self, upload: _Upload, now: float) -> None:
        upload.asked_at = now
        request = self._d.MAVLink_mission_request_int_message(*upload.peer.ids, len(upload.rows), 0)
        self._send(request, upload.peer.address)

    def _on_item(self, message: Any, peer: Peer, now: float) -> None:
        upload = self._upload
        if (
            upload is None
            or upload.peer != peer
            or message.mission_type != self._d.MAV_MISSION_TYPE_MISSION
        ):
            return
        if message.seq != len(upload.rows):  # a repeated one, or too early: wait for the next
            return

        upload.rows.append(Row.of_message(message))
        upload.tries = 1
        if len(upload.rows) < upload.count:
            self._ask(upload, now)
            return

        self._upload = None
        self._finish(peer, tuple(upload.rows))

    def _finish(self, peer: Peer, rows: tuple[Row, ...]) -> None:
        try:
            self._flight.take_mission(rows)
        except Refused as refusal:
            self._report(f"Mission refused: {refusal}")
            self._ack(peer, refusal.result)
            return
        self._ack(peer, "MAV_MISSION_ACCEPTED")

    def _ack(self, peer: Peer, result: str, mission_type: int = 0) -> None:
        code = getattr(self._d, result)
        answer = self._d.MAVLink_mission_ack_message(*peer.ids, code, mission_type)
        self._send(answer, peer.address)

    def _item_message(self, ids: Sender, seq: int) -> Any:
        row = self._flight.mission.rows[seq]
        return self._d.MAVLink_mission_item_int_message(
            *ids,
            seq,
            row.frame,
            row.command,
            0,
            row.autocontinue,
            *row.params,
            row.x,
            row.y,
            row.z,
            0,
        )
