# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's mission protocol, the vehicle's side.

A transaction belongs to a system, a component and an address: several ground stations may have the
same ids. Its answers go to that address alone.

Missions, fences and rally points are uploaded row by row, and sent back as they came. Each has an
id that is another one whenever its rows change, also by another client of mission_node.
https://mavlink.io/en/services/mission.html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rfly_mavlink.dialect.wire import Address, Peer, Send, load_dialect, peer_of
from rfly_mavlink.stations.flight import FlightLogic
from rfly_mavlink.stations.mission_rows import MOST_ROWS, MissionRow, Refused
from rfly_mavlink.stations.plan_rows import plan_id, with_ids

RETRY_S = 0.25
"""Time, s, after which a row is requested again (the protocol's recommendation for items)."""
TRIES = 12
"""Number of requests for a row."""
ROWS_AT_ONCE = 20
"""Number of rows of a partial list that are sent at once; a tick sends more."""
_ACCEPTED = "MAV_MISSION_ACCEPTED"


@dataclass
class _Upload:
    """An upload under way."""

    peer: Peer
    mission_type: int
    count: int
    """Number of the plan's rows up to the last one that is uploaded."""
    asked_at: float
    """Wall time of the last request, s."""
    rows: list[MissionRow] = field(default_factory=list)
    """The plan's rows so far; those before a part are there from the beginning."""
    rest: tuple[MissionRow, ...] = ()
    """The rows behind a part."""
    replaces: int = 0
    """Id of the plan of which a part is replaced; 0: the whole plan is, whatever it is."""
    tries: int = 1
    """Number of requests for the next row."""


@dataclass(frozen=True)
class _Answered:
    """An upload that has ended; its last row may come again if the answer was lost."""

    peer: Peer
    seq: int
    result: str


@dataclass
class _PartialList:
    """Rows that are being sent."""

    peer: Peer
    mission_type: int
    seqs: range


@dataclass(frozen=True)
class _Plan:
    """One of the plans of a vehicle."""

    name: str
    rows: Callable[[], Sequence[MissionRow]]
    take: Callable[[Sequence[MissionRow]], None]
    """Replaces it; raises Refused."""


class MissionProtocol:
    """Answers to the messages of `HANDLED`; `flight` has mission, fence and rally points."""

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
            "MISSION_REQUEST_PARTIAL_LIST",
            "MISSION_WRITE_PARTIAL_LIST",
        }
    )

    def __init__(self, flight: FlightLogic, send: Send, report: Callable[[str], None]) -> None:
        """Start without an upload; `report` receives the reasons of refusals."""
        d = self._d = load_dialect()
        area = flight.area
        self._send = send
        self._report = report
        self._upload: _Upload | None = None
        self._answered: dict[int, _Answered] = {}
        self._sending: _PartialList | None = None
        self._plans = {
            d.MAV_MISSION_TYPE_MISSION: _Plan(
                "Mission", lambda: flight.mission.rows, flight.take_mission
            ),
            d.MAV_MISSION_TYPE_FENCE: _Plan("Fence", lambda: area.fence_rows, area.take_fence),
            d.MAV_MISSION_TYPE_RALLY: _Plan("Rally", lambda: area.rally_rows, area.take_rally),
        }

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
        elif kind == "MISSION_CLEAR_ALL":
            self._clear(peer, message.mission_type)
        elif message.mission_type not in self._plans:
            self._ack(peer, "MAV_MISSION_UNSUPPORTED", message.mission_type)
        elif kind == "MISSION_COUNT":
            self._begin(peer, message.mission_type, message.count, now)
        elif kind == "MISSION_REQUEST_LIST":
            self._send_count(peer, message.mission_type)
        elif kind == "MISSION_REQUEST_PARTIAL_LIST":
            self._send_part(peer, message)
        elif kind == "MISSION_WRITE_PARTIAL_LIST":
            self._begin_part(peer, message, now)
        else:
            self._send_item(peer, message.mission_type, message.seq)

    def _clear(self, peer: Peer, mission_type: int) -> None:
        """Clear one plan, or all of them."""
        is_all = mission_type == self._d.MAV_MISSION_TYPE_ALL
        cleared = list(self._plans) if is_all else [mission_type]
        if mission_type not in self._plans and not is_all:
            self._ack(peer, "MAV_MISSION_UNSUPPORTED", mission_type)
        elif self._is_busy_for(peer):
            self._refuse_busy(peer, mission_type)
        else:
            self._upload = None
            results = [self._take(each, ()) for each in cleared]
            failed = [result for result in results if result != _ACCEPTED]
            self._ack(peer, failed[0] if failed else _ACCEPTED, mission_type)

    def tick(self, now: float) -> None:
        """Request missing rows again, and give up in the end; send more of a partial list."""
        self._send_rows()
        upload = self._upload
        if upload is None or now - upload.asked_at < RETRY_S:
            return
        if upload.tries >= TRIES:
            self._upload = None
            self._ack(upload.peer, "MAV_MISSION_OPERATION_CANCELLED", upload.mission_type)
            name = self._plans[upload.mission_type].name
            self._report(f"{name} upload given up: no item {len(upload.rows)}")
            return

        upload.tries += 1
        self._ask(upload, now)

    def _is_busy_for(self, peer: Peer) -> bool:
        """Return whether another station is uploading."""
        return self._upload is not None and self._upload.peer != peer

    def _refuse_busy(self, peer: Peer, mission_type: int) -> None:
        name = self._plans[mission_type].name if mission_type in self._plans else "Mission"
        self._report(f"{name} refused: another one is being uploaded")
        self._ack(peer, "MAV_MISSION_DENIED", mission_type)

    def _begin(self, peer: Peer, mission_type: int, count: int, now: float) -> None:
        if self._is_busy_for(peer):
            self._refuse_busy(peer, mission_type)
        elif count > MOST_ROWS:
            self._ack(peer, "MAV_MISSION_NO_SPACE", mission_type)
        elif count == 0:
            self._upload = None
            self._ack(peer, self._take(mission_type, ()), mission_type)
        else:
            self._answered.pop(mission_type, None)
            self._upload = _Upload(peer, mission_type, count, now)
            self._ask(self._upload, now)

    def _begin_part(self, peer: Peer, message: Any, now: float) -> None:
        """Begin an upload that replaces some rows, or continues the list."""
        mission_type = message.mission_type
        rows = tuple(self._plans[mission_type].rows())
        start = message.start_index
        count = len(rows) if message.end_index == -1 else message.end_index + 1
        if self._is_busy_for(peer):
            self._refuse_busy(peer, mission_type)
        elif not 0 <= start <= len(rows) or not start < count:
            self._ack(peer, "MAV_MISSION_INVALID_SEQUENCE", mission_type)
        elif count > MOST_ROWS:
            self._ack(peer, "MAV_MISSION_NO_SPACE", mission_type)
        else:
            self._answered.pop(mission_type, None)
            before = list(rows[:start])
            self._upload = _Upload(
                peer, mission_type, count, now, before, rows[count:], plan_id(rows)
            )
            self._ask(self._upload, now)

    def _ask(self, upload: _Upload, now: float) -> None:
        upload.asked_at = now
        request = self._d.MAVLink_mission_request_int_message(
            *upload.peer.ids, len(upload.rows), upload.mission_type
        )
        self._send(request, upload.peer.address)

    def _on_item(self, message: Any, peer: Peer, now: float) -> None:
        upload = self._upload
        if upload is None or upload.peer != peer or message.mission_type != upload.mission_type:
            answered = self._answered.get(message.mission_type)
            if answered is not None and (answered.peer, answered.seq) == (peer, message.seq):
                self._ack(peer, answered.result, message.mission_type)
            return
        if message.seq != len(upload.rows):  # a repeated one, or too early: wait for the next
            return

        upload.rows.append(MissionRow.of_message(message))
        upload.tries = 1
        if len(upload.rows) < upload.count:
            self._ask(upload, now)
            return

        self._upload = None
        result = "MAV_MISSION_DENIED"
        plan = self._plans[upload.mission_type]
        if upload.replaces in (0, plan_id(plan.rows())):
            result = self._take(upload.mission_type, (*upload.rows, *upload.rest))
        else:
            self._report(f"{plan.name} refused: it has changed during the upload of a part")
        self._answered[upload.mission_type] = _Answered(peer, message.seq, result)
        self._ack(peer, result, upload.mission_type)

    def _take(self, mission_type: int, rows: Sequence[MissionRow]) -> str:
        """Replace a plan; return the name of the result."""
        plan = self._plans[mission_type]
        try:
            plan.take(rows)
        except Refused as refusal:
            self._report(f"{plan.name} refused: {refusal}")
            return refusal.result
        return _ACCEPTED

    def _ack(self, peer: Peer, result: str, mission_type: int = 0) -> None:
        code = getattr(self._d, result)
        answer = self._d.MAVLink_mission_ack_message(*peer.ids, code, mission_type)
        if result == _ACCEPTED and mission_type in self._plans:
            with_ids(answer, opaque_id=plan_id(self._plans[mission_type].rows()))
        self._send(answer, peer.address)

    def _send_count(self, peer: Peer, mission_type: int) -> None:
        rows = self._plans[mission_type].rows()
        answer = self._d.MAVLink_mission_count_message(*peer.ids, len(rows), mission_type)
        self._send(with_ids(answer, opaque_id=plan_id(rows)), peer.address)

    def _send_part(self, peer: Peer, message: Any) -> None:
        """Send some rows without a request for each; the end -1 is the last one."""
        count = len(self._plans[message.mission_type].rows())
        end = count - 1 if message.end_index == -1 else message.end_index
        if not 0 <= message.start_index <= end < count:
            self._ack(peer, "MAV_MISSION_INVALID_SEQUENCE", message.mission_type)
            return
        seqs = range(message.start_index, end + 1)
        self._sending = _PartialList(peer, message.mission_type, seqs)
        self._send_rows()

    def _send_rows(self) -> None:
        part = self._sending
        if part is None:
            return
        for seq in part.seqs[:ROWS_AT_ONCE]:
            self._send_item(part.peer, part.mission_type, seq)
        part.seqs = part.seqs[ROWS_AT_ONCE:]
        self._sending = part if part.seqs else None

    def _send_item(self, peer: Peer, mission_type: int, seq: int) -> None:
        rows = self._plans[mission_type].rows()
        if not 0 <= seq < len(rows):
            self._ack(peer, "MAV_MISSION_INVALID_SEQUENCE", mission_type)
            return
        row = rows[seq]
        place = row.x, row.y, row.z
        start = seq, row.frame, row.command, 0, row.autocontinue
        item = self._d.MAVLink_mission_item_int_message(
            *peer.ids, *start, *row.params, *place, mission_type
        )
        self._send(item, peer.address)
