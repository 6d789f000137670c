# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles of a fleet as entities of simulation_interfaces, and their time.

They can be spawned, deleted and moved. Part of trajectory_node.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import Vector3
from simulation_interfaces import srv
from simulation_interfaces.msg import Bounds, Result, SimulatorFeatures
from simulation_interfaces.srv import DeleteEntity, GetSpawnables, SpawnEntity

from rfly_collision.shapes.vehicle_meshes import BOX_HIGH, BOX_LOW, PERSON, kind_of
from rfly_common.errors import ConfigError, PlacementError
from rfly_common.frames import quat_rotate, quat_to_euler
from rfly_common.ros import entity_services, simulation_services
from rfly_common.ros.entity_services import (
    HUMAN,
    ROBOT,
    Entity,
    EntityMotion,
    EntityServices,
    Pose,
    Twist,
)
from rfly_common.ros.simulation_services import NO_GROUND, SimulationServices, result
from rfly_trajectory.fleet.entities import (
    MAX_AT_ONCE,
    MAX_NAME,
    MAX_SPAWNED,
    NO_LAND_AIR,
    NOT_SPAWNED,
    SCHEME,
    SPAWNABLES,
    Spawnable,
    find_spawnable,
    free_name,
    is_name,
    moved,
    spawned,
    speed_along,
)
from rfly_trajectory.fleet.fleet import Vehicle
from rfly_trajectory.ros.follow_path_topics import FollowPaths
from rfly_trajectory.ros.run_control_topics import RunControl

if TYPE_CHECKING:
    from rfly_trajectory.ros.avoidance_topics import KeptClear
    from rfly_trajectory.ros.trajectory_node import TrajectoryNode

Refusal = tuple[bool, int, str]
"""Whether it holds, the code of the answer, and the reason."""

BATCH_S = 0.005
"""Wall time of consecutive steps before messages and services have their turn, s."""
DIFFERENCE_S = 1e-3
"""Time between the velocities from which an acceleration is computed, s."""
_FEATURES = (
    SimulatorFeatures.SPAWNING,
    SimulatorFeatures.DELETING,
    SimulatorFeatures.SPAWNABLES,
    *entity_services.FEATURES,
)
_ALL = (
    simulation_services.SCOPE_TIME
    | simulation_services.SCOPE_STATE
    | simulation_services.SCOPE_SPAWNED
)


class FleetEntities:
    """Services of simulation_interfaces for the vehicles of trajectory_node.

    `first_id`: id of the first spawned vehicle; `period`: fleet time of a step, s.
    """

    def __init__(
        self,
        node: TrajectoryNode,
        run: RunControl,
        follow: FollowPaths,
        first_id: int,
        period: float,
    ) -> None:
        self._node = node
        self._run = run
        self._follow = follow
        self._first_id = first_id
        self._period = period
        self._spawned: dict[str, Spawnable] = {}
        self._steps_left = 0
        self._listed: tuple[tuple[Vehicle, ...], list[Entity]] = ((), [])
        EntityServices(node, self, follow.frames.axes)
        node.create_service(GetSpawnables, "~/get_spawnables", self._get_spawnables)
        node.create_service(SpawnEntity, "~/spawn_entity", self._spawn_one)
        node.create_service(DeleteEntity, "~/delete_entity", self._delete)
        features = list(_FEATURES)
        if hasattr(srv, "SpawnEntities"):  # versions before 1.5 have none
            node.create_service(srv.SpawnEntities, "~/spawn_entities", self._spawn_many)
            features.append(SimulatorFeatures.SPAWNING_ENTITIES)
        info = (
            f"a step is {period:g} s of the fleet; a reset of time is one of state too; "
            f"{NO_LAND_AIR}"
        )
        self._services = SimulationServices(node, self, _ALL, features, info)

    def destroy(self) -> None:
        """Take the action of steps off the graph."""
        self._services.destroy()

    def forget(self) -> None:
        """Another fleet was loaded: what was spawned is gone."""
        self._spawned.clear()

    # --- time, as `simulation_services.ControlledRun`

    @property
    def run_state(self) -> int:
        """One of STATES."""
        if self._node.fleet is None or self._run.start_ns is None:
            return simulation_services.LOADING
        if not self._run.paused:
            return simulation_services.PLAYING
        return simulation_services.STOPPED if self._run.stopped else simulation_services.PAUSED

    @property
    def broken(self) -> str:
        """Return nothing: a fleet's vehicles don't break."""
        return ""

    def go(self, state: int) -> None:
        """Play, pause or stop the fleet."""
        if state == simulation_services.PLAYING:
            self._run.start()
            return
        self._run.pause()
        if state == simulation_services.STOPPED:
            self.reset(_ALL)
        self._run.stopped = state == simulation_services.STOPPED

    def reset(self, scope: int) -> None:
        """Remove spawned vehicles, put vehicles back on their paths, and set the time to 0.

        A reset of everything restores deleted vehicles, too.
        """
        node = self._node
        if scope & _ALL == _ALL:
            node.reload()
        elif scope & simulation_services.SCOPE_SPAWNED and node.fleet is not None:
            self._remove(set(self._spawned))
        if scope & simulation_services.SCOPE_STATE:
            self._follow.forget()
            if node.kept_clear is not None:
                node.kept_clear.forget()
            node.change_vehicles(node.plan.vehicles, node.plan.vehicles)
        if scope & simulation_services.SCOPE_TIME:
            self._run.restart()

    def step(self, ticks: int) -> None:
        """Advance the fleet by this number of ticks."""
        self._steps_left = ticks
        if ticks and self._node.executor is not None:
            self._node.executor.create_task(self._run_steps)

    def _run_steps(self) -> None:
        begin = time.monotonic()
        while self._steps_left and time.monotonic() - begin < BATCH_S:
            self._steps_left -= 1
            self._run.advance(self._period)
            self._node.tick()
            self._services.progress(self._steps_left)
        if self._steps_left:
            self.step(self._steps_left)
        elif self._services.stepping:
            self._services.stepped()

    # --- vehicles, as `entity_services.Entities`

    def entities(self) -> Sequence[Entity] | None:
        """Return all vehicles of this node."""
        fleet = self._node.fleet
        if fleet is None:
            return None
        if self._listed[0] is not fleet.vehicles:
            self._listed = (
                fleet.vehicles,
                [self._entity(vehicle, fleet.name) for vehicle in fleet.vehicles],
            )
        return self._listed[1]

    def _entity(self, vehicle: Vehicle, fleet_name: str) -> Entity:
        kind = int(kind_of(vehicle.vehicle_type))
        made = self._spawned.get(vehicle.name)
        text = f"{vehicle.kind} of fleet {fleet_name!r}" if made is None else made.description
        category = HUMAN if kind == PERSON else ROBOT
        tags = (vehicle.kind, "fleet" if made is None else "spawned")
        return Entity(
            vehicle.name,
            category,
            text,
            tags,
            BOX_LOW[kind] * vehicle.scale,
            BOX_HIGH[kind] * vehicle.scale,
        )

    def motions(self, indices: Sequence[int]) -> tuple[int, Sequence[EntityMotion]]:
        """Return the motions of the last published states, in seconds of the fleet."""
        fleet = self._node.fleet
        assert fleet is not None
        now = self._run.fleet_time or 0.0
        if self._node.kept_clear is not None:
            return self._run.last_ns, self._kept_clear_motions(self._node.kept_clear, indices, now)
        few = fleet.of([fleet.vehicles[index] for index in indices])
        at = few.sample_times([now, now + DIFFERENCE_S])
        turning = quat_rotate(at.orientation, at.angular_velocity)
        rates = [(each[1] - each[0]) / DIFFERENCE_S for each in (at.velocity, turning)]
        parts = (at.position[0], at.orientation[0], at.velocity[0], turning[0], *rates)
        return self._run.last_ns, [EntityMotion(*of_one) for of_one in zip(*parts, strict=True)]

    def _kept_clear_motions(
        self, kept_clear: KeptClear, indices: Sequence[int], now: float
    ) -> list[EntityMotion]:
        """Return the motions of vehicles that may be off their tracks, as if turning steadily."""
        fleet = self._node.fleet
        assert fleet is not None
        rows = list(indices)
        at = kept_clear.states(fleet, now, "", self._run.last_ns).select(np.array(rows, np.int64))
        orientation = at.orientation
        turning = quat_rotate(orientation, at.angular_velocity.astype(float))
        parts = (
            at.position,
            orientation,
            at.velocity.astype(float),
            turning,
            kept_clear.acceleration[rows],
            np.zeros((len(rows), 3)),
        )
        return [EntityMotion(*of_one) for of_one in zip(*parts, strict=True)]

    def put(self, index: int, pose: Pose | None, twist: Twist | None) -> None:
        """Take the vehicle off its path: it goes straight on along its nose, brakes and stands."""
        fleet = self._node.fleet
        plan = self._node.plan
        assert fleet is not None
        vehicle = fleet.vehicles[index]
        if self._node.is_shared(vehicle.name):
            raise ConfigError(_shared_text(vehicle.name))

        # the speed: as it is, or along the wanted twist
        (_, (now,)) = self.motions([index])
        position, orientation = pose or (now.position, now.orientation)
        yaw = float(quat_to_euler(orientation)[2])
        if twist is None:
            nose = quat_rotate(now.orientation, np.array((1.0, 0.0, 0.0)))
            speed = float(np.copysign(np.hypot(*now.velocity[:2]), nose @ now.velocity))
        else:
            speed = speed_along(vehicle.kind, twist.linear, twist.angular, yaw)

        changed = moved(vehicle, fleet, self._run.fleet_time or 0.0, position, yaw, speed)
        self._follow.release(vehicle.name)
        if self._node.kept_clear is not None:
            self._node.kept_clear.place(vehicle.name)
        self._node.change_vehicles(
            [*fleet.vehicles[:index], changed, *fleet.vehicles[index + 1 :]],
            plan.vehicles,
        )

    # --- vehicles that come and go

    def _get_spawnables(self, request: Any, response: Any) -> Any:
        from simulation_interfaces.msg import Spawnable as Message

        unknown = f"sources not known here: {', '.join(request.sources)}" if request.sources else ""
        response.result = result(Result.RESULT_OK, unknown)
        for each in SPAWNABLES.values():
            message = Message(description=each.description)
            getattr(
                message, "entity_resource", message
            ).uri = each.uri  # since 2.0 within a Resource
            kind = int(kind_of(each.vehicle_type))
            corners = [
                Vector3(**dict(zip("xyz", at.tolist(), strict=True)))
                for at in (BOX_HIGH[kind], BOX_LOW[kind])
            ]
            message.spawn_bounds = Bounds(type=Bounds.TYPE_BOX, points=corners)
            response.spawnables.append(message)
        return response

    def _spawn_one(self, request: Any, response: Any) -> Any:
        fleet = self._node.fleet
        namespace = request.entity_namespace.strip("/")
        taken = {vehicle.name for vehicle in fleet.vehicles} if fleet is not None else set()
        resource = getattr(request, "entity_resource", request)  # since 2.0 within a Resource
        what, reason = _find(resource.uri.removeprefix(SCHEME))

        # the first refusal that holds
        for holds, code, text in (
            *self._refusals(),
            *_resource_refusals(resource),
            (what is None, Result.RESULT_NOT_FOUND, f"{resource.uri!r}: {reason}"),
            *_name_refusals(request, namespace, taken),
        ):
            if holds:
                response.result = result(code, text)
                return response

        assert what is not None
        name = free_name(request.name, namespace, taken, what.name)
        try:
            frame = request.initial_pose.header.frame_id
            axes = entity_services.axes_of(frame, self._follow.frames.axes)
            self._add(what, name, entity_services.msg_to_pose(request.initial_pose.pose, axes))
        except PlacementError as error:
            response.result = result(SpawnEntity.Response.INVALID_POSE, str(error))
            return response

        response.result = result(Result.RESULT_OK)
        response.entity_name = name
        return response

    def _refusals(self) -> list[Refusal]:
        """Return what may hinder this node from taking another vehicle."""
        apart = self._node.areas is not None and self._node.kept_clear is not None
        return [
            (self._node.fleet is None, Result.RESULT_INCORRECT_STATE, NO_GROUND),
            (
                apart,
                Result.RESULT_FEATURE_UNSUPPORTED,
                "vehicles of other areas could not keep clear of it: spawn without avoidance, or "
                "without an area",
            ),
            (
                len(self._spawned) >= MAX_SPAWNED,
                Result.RESULT_OPERATION_FAILED,
                f"{MAX_SPAWNED} are spawned already",
            ),
        ]

    def _add(self, what: Spawnable, name: str, pose: Pose) -> None:
        fleet = self._node.fleet
        plan = self._node.plan
        ids = self._node.taken_ids()
        assert fleet is not None

        # the first free id
        id = next(
            number
            for number in range(self._first_id, self._first_id + len(ids) + 1)
            if number not in ids
        )

        vehicle = spawned(
            what,
            name,
            id,
            fleet,
            pose.position,
            float(quat_to_euler(pose.orientation)[2]),
        )

        self._spawned[name] = what
        if self._node.kept_clear is not None:
            self._node.kept_clear.place(name)
        self._node.change_vehicles((*fleet.vehicles, vehicle), (*plan.vehicles, vehicle))

    def _spawn_many(self, request: Any, response: Any) -> Any:
        from simulation_interfaces.msg import SpawnResult

        if (count := len(request.spawn_requests)) > MAX_AT_ONCE:
            text = (
                f"{count} spawn_requests, expected at most {MAX_AT_ONCE} at once: "
                "nothing else goes on meanwhile"
            )
            response.result = result(Result.RESULT_OPERATION_FAILED, text)
            return response
        response.results = [self._spawn_one(each, SpawnResult()) for each in request.spawn_requests]
        failed = sum(each.result.result != Result.RESULT_OK for each in response.results)
        code = srv.SpawnEntities.Response.ENTITIES_SPAWN_FAILED if failed else Result.RESULT_OK
        response.result = result(
            code, f"{failed} of {len(response.results)} failed" if failed else ""
        )
        return response

    def _delete(self, request: Any, response: Any) -> Any:
        fleet = self._node.fleet
        if fleet is None:
            response.result = result(Result.RESULT_INCORRECT_STATE, NO_GROUND)
        elif all(vehicle.name != request.entity for vehicle in fleet.vehicles):
            response.result = result(Result.RESULT_NOT_FOUND, f"entity {request.entity!r}")
        elif self._node.is_shared(request.entity):
            code = Result.RESULT_OPERATION_FAILED
            response.result = result(code, _shared_text(request.entity))
        else:
            self._remove({request.entity})
            response.result = result(Result.RESULT_OK)
        return response

    def _remove(self, names: set[str]) -> None:
        fleet = self._node.fleet
        plan = self._node.plan
        assert fleet is not None
        for name in names:
            self._spawned.pop(name, None)
        left = ([v for v in each.vehicles if v.name not in names] for each in (fleet, plan))
        self._node.change_vehicles(*left)


def _find(kind: str) -> tuple[Spawnable | None, str]:
    """Return what a request names, or None and the reason."""
    try:
        return find_spawnable(kind), ""
    except ConfigError as error:
        return None, str(error)


def _resource_refusals(resource: Any) -> list[Refusal]:
    """Return what may be wrong with a resource, which names a kind of vehicle."""
    codes = SpawnEntity.Response
    unsupported = Result.RESULT_FEATURE_UNSUPPORTED
    uri = resource.uri
    known = ", ".join(spawnable.uri for spawnable in SPAWNABLES.values())
    is_empty = not uri and not resource.resource_string
    is_land_air = uri.removeprefix(SCHEME) in NOT_SPAWNED
    return [
        (is_empty, codes.NO_RESOURCE, f"no uri: expected {known}"),
        (not uri, unsupported, f"a resource_string: expected a uri of {known}"),
        (not uri.startswith(SCHEME), codes.UNSUPPORTED_FORMAT, f"{uri!r}: expected {known}"),
        (is_land_air, unsupported, f"{uri!r}: {NO_LAND_AIR}"),
    ]


def _name_refusals(request: Any, namespace: str, taken: set[str]) -> list[Refusal]:
    """Return what may be wrong with the requested name."""
    codes = SpawnEntity.Response
    may_rename = request.allow_renaming
    full = f"{namespace}/{request.name}" if namespace else request.name
    is_wrong = bool(request.name) and ("/" in request.name or not is_name(full))

    return [
        (
            bool(namespace) and not is_name(namespace),
            codes.NAMESPACE_INVALID,
            f"namespace {namespace!r}",
        ),
        (
            not request.name and not may_rename,
            codes.NAME_INVALID,
            "no name, and none may be chosen",
        ),
        (is_wrong, codes.NAME_INVALID, _name_text(full)),
        (full in taken and not may_rename, codes.NAME_NOT_UNIQUE, f"name {full!r} is taken"),
    ]


def _shared_text(name: str) -> str:
    return f"entity {name!r} keeps to its plan, because nodes of several areas drive it"


def _name_text(name: str) -> str:
    return f"name {name!r}: expected up to {MAX_NAME} letters, digits and _, the first a letter"
