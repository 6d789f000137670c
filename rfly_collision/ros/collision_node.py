# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""collision_node: contacts of vehicles, placed objects and ground.

It is a thin shell around CollisionWorld.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.node import Node
from rfly_suite.msg import ContactArray, PlacedObjectArray, VehicleStateArray
from rfly_suite.srv import CheckCollision
from visualization_msgs.msg import MarkerArray

from rfly_collision.ros.contact_msgs import ContactMarkers, events_to_msg, msg_to_placed
from rfly_collision.ros.node_parameters import CollisionParameters
from rfly_collision.shapes.vehicle_descriptions import read_vehicle_descriptions, with_descriptions
from rfly_collision.shapes.vehicle_shapes import load_shapes
from rfly_collision.world.collision_world import CollisionWorld, Step, within_limits
from rfly_collision.world.contact_tracker import BEGIN, ContactEvents
from rfly_collision.world.ignore_rules import IgnoreRules
from rfly_collision.world.scene import warm_up
from rfly_common.diagnostic_reasons import Notice
from rfly_common.errors import CrowdError, FrameError, PlacementError, VehicleStatesError
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, ClockWatch, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.frame_lookup import Frames
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import CONTACTS_OUT, FLEET_IN, LATCHED, STATE_OUT
from rfly_common.state_sources import IdOwners, StampFilter
from rfly_common.vehicle_states import VehicleStates, msg_to_states, states_to_enu
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_topics import NO_MAP_YET, NOT_YET, LatestTerrain

MARKERS_EVERY_NS = 100_000_000
COUNTERS = (
    "not_finite",
    "bad_quaternion",
    "bad_id",
    "bad_scale",
    "too_far",
    "unknown_frame",
    "inconsistent",
    "stale",
    "other_source",
    "too_many",
    "refused_objects",
)
"""Reasons for dropped states, counted by vehicle.

A message that is inconsistent in itself counts as one.
"""


class CollisionNode(Node):
    """Node that takes states as they come; a timer steps the world and publishes the changes."""

    def __init__(self) -> None:
        super().__init__("collision_node")
        params = declare_parameters(self, CollisionParameters)
        self._frame_id = params.frame_id
        self._axes = "ned" if params.frame_id == "map_ned" else "enu"

        # the world
        shapes = load_shapes(params.shapes)
        if params.vehicle_xml:
            shapes = with_descriptions(shapes, read_vehicle_descriptions(params.vehicle_xml))
        self._world = CollisionWorld(
            shapes,
            IgnoreRules(params.ignore),
            outside=params.outside,
            max_speed=params.max_speed,
            stale_after_s=params.stale_after,
            max_pairs=params.max_pairs,
            max_vehicles=params.max_vehicles,
        )

        # inputs
        self._frames = Frames(self)
        self._stamps = StampFilter(on_set_back=self._on_set_back)
        self._owners = IdOwners(params.stale_after)
        self._ground = LatestTerrain(self, self._on_terrain_map)

        # outputs
        self._markers = ContactMarkers(
            self._frame_id, self._axes, params.marker_length, params.max_markers
        )
        self._markers_ns = 0
        self._warned: set[int] = set()
        self._step_ms = 0.0
        self._clock_watch = ClockWatch(self)
        self._diagnostics = Diagnostics(self, "collisions", "", self._every_second)
        self._diagnostics.counters = dict.fromkeys(COUNTERS, 0)

        # jumps of the clock
        back = JumpThreshold(
            min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=False
        )
        self._jumps = self.get_clock().create_jump_callback(back, post_callback=self._on_clock_jump)

        # topics and services
        self._contacts = publisher(self, ContactArray, "contacts", CONTACTS_OUT)
        self._arrows = publisher(self, MarkerArray, "contact_markers", STATE_OUT)
        self.create_service(CheckCollision, "check_collision", self._serve_check)
        self._ground.start(self._diagnostics)
        subscription(self, PlacedObjectArray, "placed_objects", self._on_placed_objects, LATCHED)
        subscription(self, VehicleStateArray, "vehicle_states", self._on_vehicle_states, FLEET_IN)

        self._update_diagnostics()
        self._timer = self.create_timer(1.0 / params.rate, self._tick)
        self.get_logger().info(
            f"shapes {params.shapes!r}, at most {params.rate:g} steps/s; waiting for vehicle_states"
        )
        warm_up()  # last: the node is seen by others meanwhile

    # --- what comes in

    def _on_vehicle_states(self, message: VehicleStateArray) -> None:
        steady_ns = time.monotonic_ns()
        what = f"vehicle_states of {message.source!r}"
        try:
            states = msg_to_states(message)
        except VehicleStatesError as error:
            self._drop("inconsistent", 1, f"{what}: {error}", "vehicle_states")
            return

        # stale or repeated messages
        now_ns = self.get_clock().now().nanoseconds
        reason = self._stamps.rejection_reason(what, states.stamp_ns, now_ns, steady_ns)
        if reason is not None:
            self._drop(reason, len(states), what, "vehicle_states")
            return

        # vehicles of other sources
        claim = self._owners.claim(states.id, states.source, steady_ns)
        if claim.conflicts:
            first = claim.conflicts[0]
            self._drop("other_source", claim.others, str(first), str(first.vehicle_id))
            states = states.select(claim.accepted)

        # frame and numbers
        try:
            in_map, dropped = self._in_map(states)
        except FrameError as error:
            self._drop("unknown_frame", len(states), f"{what}: {error}", "vehicle_states")
            return
        for reason, count in dropped.items():
            self._drop(reason, count, what, "vehicle_states")

        if len(in_map):
            left_out = self._world.update(in_map, states.stamp_ns or now_ns, steady_ns)
            if left_out:
                self._drop(
                    "too_many",
                    left_out,
                    f"{what}: {self._world.vehicles:,} vehicles are tested already",
                    "vehicle_states",
                )

    def _in_map(self, states: VehicleStates) -> tuple[VehicleStates, dict[str, int]]:
        """Return the vehicles that can be tested, in `map`, and the others' number by reason.

        Raise FrameError.
        """
        frame = self._frames.resolve(states.frame_id or self._frame_id, states.stamp_ns)
        in_map, dropped = states_to_enu(states, frame.axes, *frame.motion)
        good, more = within_limits(in_map)
        return (in_map.select(good) if more else in_map), dropped | more

    def _on_placed_objects(self, message: PlacedObjectArray) -> None:
        axes = self._frames.axes(message.header.frame_id)
        try:
            if axes is None:
                raise PlacementError(
                    f"placed_objects: frame {message.header.frame_id!r} is no world frame"
                )
            self._world.set_objects(msg_to_placed(message, axes))
        except PlacementError as error:
            self._drop("refused_objects", 1, str(error), "placed_objects")
            return
        self._warn_of_default_shapes()

    def _on_terrain_map(self, terrain: HeightMap, _geo_origin: tuple[float, float, float]) -> None:
        self._diagnostics.hardware_id = terrain.name
        self._world.set_terrain(terrain)
        self.get_logger().info(f"testing against map {terrain.name!r}")
        self._update_diagnostics()

    # --- what goes out

    def _tick(self) -> None:
        self._world.drop_stale(time.monotonic_ns())
        start = time.perf_counter()
        step = self._world.step()
        if step is None:
            return
        self._step_ms = 1e3 * (time.perf_counter() - start)
        self._diagnostics.count("steps")
        self._warn_of_default_shapes()
        self._publish(step)

    def _publish(self, step: Step) -> None:
        if len(step.events):
            self._contacts.publish(
                events_to_msg(step.events, step.stamp_ns, self._frame_id, self._axes)
            )
            self._diagnostics.count(
                "begun_contacts", int(np.count_nonzero(step.events.event == BEGIN))
            )
        self._show(step.stamp_ns, time.monotonic_ns())

    def _show(self, stamp_ns: int, steady_ns: int) -> None:
        if not self._arrows.get_subscription_count():
            self._markers.forget()
        elif steady_ns - self._markers_ns >= MARKERS_EVERY_NS:
            arrows = self._markers.message(self._world.active, stamp_ns)
            if arrows is not None:
                self._markers_ns = steady_ns
                self._arrows.publish(arrows)

    def _serve_check(self, request: Any, response: Any) -> Any:
        response.contacts.header.frame_id = self._frame_id
        try:
            states = msg_to_states(request.states)
            in_map, dropped = self._in_map(states)
            stamp_ns = states.stamp_ns or self.get_clock().now().nanoseconds
            contacts = None if dropped else self._world.check(in_map, stamp_ns)
        except (VehicleStatesError, FrameError, CrowdError) as error:
            response.message = str(error)
            return response

        if contacts is None:
            first = next(i for i in states.id.tolist() if i not in set(in_map.id.tolist()))
            reasons = ", ".join(f"{reason}: {count}" for reason, count in dropped.items())
            response.message = f"vehicle {first} can't be tested ({reasons})"
            return response

        events = ContactEvents(contacts, np.full(len(contacts), BEGIN, np.uint8))
        response.contacts = events_to_msg(events, stamp_ns, self._frame_id, self._axes)
        response.success = True

        # what is worth knowing
        notes = []
        if self._world.terrain is None:
            notes.append(f"the ground was not tested: {self._ground.error or NOT_YET}")
        unknown = sorted(self._world.default_types & set(in_map.vehicle_type.tolist()))
        if unknown:
            notes.append(_default_text(unknown))
        response.message = "; ".join(notes)
        return response

    # --- what is to be told

    def _warn_of_default_shapes(self) -> None:
        new = self._world.default_types - self._warned
        if new:
            self._warned |= new
            self.get_logger().warning(_default_text(sorted(new)))
            self._update_diagnostics()

    def _drop(self, reason: str, count: int, what: str, subject: str) -> None:
        if self._diagnostics.drop(reason, count, what, subject=subject):
            self._update_diagnostics()

    def _on_set_back(self, source: str, seconds: float) -> None:
        self._diagnostics.set_back(source, seconds)
        self._update_diagnostics()

    def _update_diagnostics(self) -> None:
        warnings = self._warnings()
        self._diagnostics.set_first(
            [
                (self._ground.problem, ERROR, self._ground.problem),
                (self._world.terrain is None, STALE, [NO_MAP_YET, *warnings]),
                (not self._world.vehicles, STALE, ["no vehicle_states", *warnings]),
                (warnings, WARN, warnings),
                (True, OK, "testing"),
            ],
            vehicles=self._world.vehicles,
            objects=self._world.objects,
            contacts=len(self._world.active),
            step_ms=f"{self._step_ms:.2f}",
            terrain="" if self._world.terrain is None else self._world.terrain.name,
        )

    def _warnings(self) -> list[str | Notice]:
        found: list[str | Notice] = [self._world.crowd] if self._world.crowd else []
        if self._world.unscaled:
            found.append(
                f"{self._world.unscaled:,} vehicles are tested unscaled: their scales are too many"
            )
        if self._world.default_types:
            found.append(_default_text(sorted(self._world.default_types)))
        found += self._diagnostics.unmatched
        clock_problem = self._clock_watch.problem
        if clock_problem:
            found.append(clock_problem)
        return found

    def _every_second(self) -> None:
        steady_ns = time.monotonic_ns()
        for memory in (self._stamps, self._owners):
            memory.drop_stale(steady_ns)
        self._tick()  # a clock that stands still stops the timer, not the silence of vehicles
        self._update_diagnostics()

    def _on_clock_jump(self, _jump: Any) -> None:
        self._stamps.reset()
        self._frames.clear()
        self._publish(self._world.reset())


def _default_text(types: list[int]) -> str:
    shown = ", ".join(map(str, types[:10])) + (" …" if len(types) > 10 else "")
    return f"types without a shape of their own, taken for the default: {shown} (parameter shapes)"
