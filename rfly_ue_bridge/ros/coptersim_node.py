# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Node that publishes the vehicles which CopterSim simulates, and commands them if it may.

Theory of operation. One thread reads all ports, decodes and publishes (`CopterSimTopics`). The
executor's thread takes commands and sends them (`OffboardTopics`), which only exist with the
parameter `offboard`, and reports each vehicle on /diagnostics.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Sequence
from typing import Any

from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from tf2_msgs.msg import TFMessage

from rfly_common.diagnostic_reasons import Notice, Reason
from rfly_common.errors import ConfigError, FeedbackError, PacketError
from rfly_common.frames import Numbers
from rfly_common.geodesy import GeoPoint, geo_point
from rfly_common.ros.diagnostics import OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.frame_lookup import Frames, transform_to_msg
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import CLOCK, TF, TF_STATIC_OUT
from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.sockets.udp_sockets import ipv4
from rfly_common.transform_buffer import WORLD
from rfly_ue_bridge.codec.coptersim import RFLY_TIME_STMP
from rfly_ue_bridge.codec.packets import PacketTable
from rfly_ue_bridge.ros.coptersim_topics import CopterSimTopics, StateStream
from rfly_ue_bridge.ros.node_parameters import CopterSimParameters, OffboardParameters
from rfly_ue_bridge.ros.offboard_topics import OffboardTopics
from rfly_ue_bridge.ros.simulation_stamps import SimulationStamps
from rfly_ue_bridge.sockets.sensor_receiver import Handler, SensorReceiver
from rfly_ue_bridge.sockets.udp_sender import local_address_towards, resolve

MAX_ID = 1000
"""Largest CopterID."""
_HEART_BEATS = PacketTable((RFLY_TIME_STMP,))
_NOT_TURNED = (0.0, 0.0, 0.0, 1.0)


class CopterSimNode(Node):
    """Node for ports, transforms, /clock and diagnostics of the vehicles."""

    def __init__(self) -> None:
        super().__init__("coptersim_node")
        self._params = declare_parameters(self, CopterSimParameters)
        offboard = declare_parameters(self, OffboardParameters)
        frames = Frames(self, listen=False)
        self._stamps = SimulationStamps(self, self._params.stamp)
        self._tf = publisher(self, TFMessage, "/tf", TF) if self._params.publish_tf else None
        self._tf_static = publisher(self, TFMessage, "/tf_static", TF_STATIC_OUT)
        self._clock_out = (
            publisher(self, Clock, "/clock", CLOCK) if self._params.clock != "off" else None
        )

        ids = self._checked_ids(offboard)
        self._topics = [self._make_topics(copter_id) for copter_id in ids]
        self._offboard = (
            [
                OffboardTopics(self, topics, offboard, self._params.host, frames)
                for topics in self._topics
            ]
            if offboard.offboard
            else []
        )
        self._receiver = self._listen()
        self._statuses = [
            _VehicleStatus(
                self,
                topics,
                self._offboard[place] if self._offboard else None,
                self._params.silence_after,
                check_peers=place == 0,
                receiver=self._receiver,
            )
            for place, topics in enumerate(self._topics)
        ]
        names = ", ".join(topics.name for topics in self._topics)
        self.get_logger().info(f"waiting for CopterSim's {names}")

    def destroy_node(self) -> None:
        """Stop commanded vehicles and close sockets too."""
        self._receiver.close()
        for offboard in self._offboard:
            offboard.close()
        super().destroy_node()

    # --- making

    def _checked_ids(self, offboard: OffboardParameters) -> Sequence[int]:
        """Return the CopterIDs. Raises ConfigError."""
        ids = self._params.vehicles
        if not ids or len(set(ids)) < len(ids) or any(not 1 <= k <= MAX_ID for k in ids):
            raise ConfigError(
                f"parameter vehicles: {list(ids)}, expected different ids from 1 to {MAX_ID}"
            )

        # one name for each
        if len(ids) > 1 and "{id}" not in self._params.name:
            raise ConfigError(
                f"parameter name: {self._params.name!r} is the same for all vehicles, expected "
                "{id} in it"
            )

        # ports
        for name, port in (
            ("truth_port", self._params.truth_port),
            ("state_port", self._params.state_port),
            ("offboard_port", offboard.offboard_port),
        ):
            last = port + 2 * (max(ids) - 1)
            if last > 65535:
                raise ConfigError(f"parameter {name}: vehicle {max(ids)} would have port {last}")
        return ids

    def _make_topics(self, copter_id: int) -> CopterSimTopics:
        """Return the topics of a vehicle."""
        params = self._params
        shift = 2 * (copter_id - 1)
        is_first = copter_id == params.vehicles[0]
        has_clock = is_first and params.clock == "truth"

        return CopterSimTopics(
            self,
            copter_id,
            params.name.replace("{id}", str(copter_id)),
            (params.truth_port + shift, params.state_port + shift),
            self._stamps,
            self._given_origin(),
            on_time=self._publish_clock if has_clock else lambda _time_s: None,
            on_pose=self._publish_transform,
            on_start=self._publish_starts,
        )

    def _given_origin(self) -> GeoPoint | None:
        """Return the map's origin by parameter. Raises ConfigError."""
        values = self._params.geo_origin
        return geo_point(values, "parameter geo_origin") if values else None

    def _listen(self) -> SensorReceiver:
        """Return the receiver of all ports. Raises ConfigError for one that cannot be opened."""
        params = self._params
        bind = ipv4(params.bind, "parameter bind")
        host = resolve(params.host)
        if local_address_towards(params.host) and ipaddress.IPv4Address(bind).is_loopback:
            self.get_logger().warning(
                f"host is {params.host}, but bind is {bind}: states from there do not arrive here; "
                "set bind to this machine's address in that network"
            )

        handlers: dict[int, Handler] = {}
        for topics in self._topics:
            for port, handler in (
                (topics.truth.port, topics.take_truth),
                (topics.estimate.port, topics.take_estimate),
            ):
                if port in handlers:
                    raise ConfigError(f"port {port} is needed twice: truth_port and state_port")
                handlers[port] = handler
        if params.stamp == "simulation" or params.clock == "heartbeat":
            handlers[params.time_port] = self._take_heart_beat

        try:
            return SensorReceiver(handlers, bind, allow=params.allow or [host, "127.0.0.0/8"])
        except FeedbackError as error:
            raise ConfigError(f"{error}; RflySim's SDK, or another coptersim_node?") from error

    # --- the receiver's thread

    def _take_heart_beat(self, datagram: bytes, arrival_s: float) -> None:
        self._stamps.take_heart_beat(datagram, arrival_s)
        if self._params.clock != "heartbeat":
            return
        try:
            beat = _HEART_BEATS.decode(datagram)
        except PacketError:
            return
        if beat["copterID"] == self._params.vehicles[0]:
            self._publish_clock((beat["SysCurrentTime"] - beat["SysStartTime"]) * 1e-3)

    def _publish_clock(self, time_s: float) -> None:
        if self._clock_out is not None and 0.0 <= time_s < 2**31:
            self._clock_out.publish(Clock(clock=ns_to_stamp(round(time_s * 1e9))))

    def _publish_transform(
        self, frame_id: str, position: Numbers, quat: Numbers, stamp_ns: int
    ) -> None:
        if self._tf is not None:
            transform = transform_to_msg(WORLD, frame_id, position, quat, stamp_ns)
            self._tf.publish(TFMessage(transforms=[transform]))

    def _publish_starts(self) -> None:
        """Publish the frames of the estimates, of all vehicles whose start is known."""
        transforms = [
            transform_to_msg(WORLD, topics.start_frame, topics.start, _NOT_TURNED, 0)
            for topics in self._topics
            if topics.start is not None
        ]
        self._tf_static.publish(TFMessage(transforms=transforms))


class _VehicleStatus:
    """Status of one vehicle on /diagnostics."""

    def __init__(
        self,
        node: Node,
        topics: CopterSimTopics,
        offboard: OffboardTopics | None,
        silence_after_s: float,
        *,
        check_peers: bool,
        receiver: SensorReceiver,
    ) -> None:
        self._topics = topics
        self._offboard = offboard
        self._silence_after_s = silence_after_s
        self._receiver = receiver
        self._received: dict[str, int] = {}
        self._updated_s = time.monotonic()
        self._hits = 0
        self._diagnostics = Diagnostics(
            node, topics.name, str(topics.copter_id), self._update, check_peers=check_peers
        )

    def _update(self) -> None:
        topics = self._topics
        silent = [
            notice
            for name, stream in (("truth", topics.truth), ("estimate", topics.estimate))
            if (notice := self._silence(name, stream))
        ]
        if self._is_silent(topics.estimate):
            topics.forget_ready()
        if topics.hits > self._hits:
            self._diagnostics.warn("collisions", f"collision with {topics.last_hit}")
            self._hits = topics.hits

        warnings = [*silent, *self._warnings()]
        level = STALE if len(silent) == 2 else WARN
        ready = "ready" if topics.ready else "not ready"
        self._diagnostics.set_first(
            [(warnings, level, warnings), (True, OK, f"estimate {ready}")], **self._values()
        )

    def _is_silent(self, stream: StateStream) -> bool:
        return time.monotonic() - stream.heard_s > self._silence_after_s

    def _silence(self, name: str, stream: StateStream) -> Notice | None:
        """Return the notice of a port on which nothing arrives; None if something does."""
        if not self._is_silent(stream):
            return None
        silence_s = time.monotonic() - stream.heard_s
        since = f"for {silence_s:.0f} s" if stream.received else "yet"
        text = f"no {name} on port {stream.port} {since}"
        if stream.refused["mavlink"]:
            text += ", but MAVLink: CopterSim's UDP mode is not UDP_Full or UDP_Simple"
        return Notice(text, Reason.NO_COPTERSIM_DATA, str(stream.port))

    def _warnings(self) -> list[Any]:
        """Return what else is wrong."""
        problem = self._offboard.problem() if self._offboard else None
        faults = self._offboard.faults.notices() if self._offboard else []
        candidates = [problem, *faults, *self._diagnostics.unmatched]
        return [warning for warning in candidates if warning]

    def _values(self) -> dict[str, Any]:
        topics = self._topics
        values: dict[str, Any] = {"ready": topics.ready, "collisions": topics.hits}

        # streams, and their rates since the last look
        now_s = time.monotonic()
        elapsed_s = max(now_s - self._updated_s, 1e-3)
        self._updated_s = now_s
        for name, stream in (("truth", topics.truth), ("estimate", topics.estimate)):
            new = stream.received - self._received.get(name, 0)
            self._received[name] = stream.received
            values[f"{name}_received"] = stream.received
            values[f"{name}_rate_hz"] = f"{new / elapsed_s:.1f}"
            for reason, count in sorted(stream.refused.items()):
                values[f"{name}_{reason}"] = count

        values["not_allowed"] = self._receiver.not_allowed
        if topics.start is not None:
            values["start_enu_m"] = ", ".join(f"{number:.3f}" for number in topics.start)

        # offboard control
        if self._offboard is not None:
            values["offboard"] = self._offboard.phase.value
            values["commands_sent"] = self._offboard.sent
            values["commands_refused"] = self._offboard.refused
        return values
