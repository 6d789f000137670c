# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""spawner_node: land-air vehicles that appear and leave while the simulation runs.

Each vehicle is a set of processes in its own namespace: simulation, sensors, estimator and
controllers, and on request mission_node and mavlink_node. They end with this node.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

from rclpy.node import Node
from rfly_suite.msg import VehicleStateArray
from simulation_interfaces.msg import Result, SimulatorFeatures
from simulation_interfaces.msg import Spawnable as SpawnableMsg
from simulation_interfaces.srv import (
    DeleteEntity,
    GetSimulatorFeatures,
    GetSpawnables,
    SpawnEntity,
)

from rfly_bringup.nodes.amphibious_set import amphibious_processes
from rfly_bringup.nodes.spawned_set import (
    DESCRIPTIONS,
    LAND_AIR,
    MOST_SPAWNED,
    SpawnedVehicle,
    free_number,
    spawned_nodes,
    spawned_parameters,
)
from rfly_bringup.ros.node_parameters import SpawnerParameters
from rfly_bringup.runner.supervisor import Supervisor, node_supervisor
from rfly_common.errors import ConfigError, PlacementError
from rfly_common.frames import quat_to_euler
from rfly_common.ros.diagnostics import ERROR, OK, STALE, Diagnostics
from rfly_common.ros.endpoints import publisher, steady_timer
from rfly_common.ros.entity_services import axes_of, msg_to_pose
from rfly_common.ros.parameters import declare_parameters
from rfly_common.ros.qos import FLEET_OUT
from rfly_common.ros.simulation_services import NO_GROUND, result
from rfly_terrain.ros.terrain_topics import NO_MAP_YET, LatestTerrain
from rfly_trajectory.fleet.entities import MAX_NAME, check_place, free_name, is_name

POLL_S = 0.5
"""Wall time between two looks at the processes, s."""
_PARAMETERS = "/describe_parameters"
"""End of the name of a service that each node has, behind its namespace and name."""
_AXES = {"map": "enu", "map_ned": "ned"}
"""Axes of the frames that a pose may have."""


class Refusal(NamedTuple):
    """Reason why a vehicle cannot be spawned: a code of simulation_interfaces, and a sentence."""

    code: int
    text: str


@dataclass(frozen=True)
class _Running:
    """A vehicle and its processes."""

    vehicle: SpawnedVehicle
    supervisor: Supervisor


class SpawnerNode(Node):
    """Node that serves `spawn_entity` and `delete_entity` for land-air vehicles."""

    def __init__(self) -> None:
        super().__init__("spawner_node")
        self._settings = declare_parameters(self, SpawnerParameters)
        self._running: dict[str, _Running] = {}
        self._ground = LatestTerrain(self, lambda _terrain, _origin: None)
        self._removed = publisher(self, VehicleStateArray, "removed_vehicles", FLEET_OUT)
        self._diagnostics = Diagnostics(self, "spawner", "", self._update_diagnostics)

        self.create_service(GetSpawnables, "~/get_spawnables", self._get_spawnables)
        self.create_service(SpawnEntity, "~/spawn_entity", self._spawn)
        self.create_service(DeleteEntity, "~/delete_entity", self._delete)
        self.create_service(GetSimulatorFeatures, "~/get_simulator_features", self._get_features)
        self._ground.start(self._diagnostics)
        self._update_diagnostics()
        steady_timer(self, POLL_S, self._poll)
        self.get_logger().info("waiting for ~/spawn_entity")

    # --- services

    def _get_features(self, _: Any, response: Any) -> Any:
        response.features.features = [
            SimulatorFeatures.SPAWNING,
            SimulatorFeatures.DELETING,
            SimulatorFeatures.SPAWNABLES,
        ]
        response.features.custom_info = (
            "land-air vehicles; amphibious_sim_node in the namespace of each one serves its state "
            "and its time"
        )
        return response

    def _get_spawnables(self, request: Any, response: Any) -> Any:
        unknown = f"sources not known here: {', '.join(request.sources)}" if request.sources else ""
        response.result = result(Result.RESULT_OK, unknown)
        for uri, description in DESCRIPTIONS.items():
            message = SpawnableMsg(description=description)
            # since 2.0 within a Resource
            getattr(message, "entity_resource", message).uri = uri
            response.spawnables.append(message)
        return response

    def _spawn(self, request: Any, response: Any) -> Any:
        vehicle = self._requested(request)
        if isinstance(vehicle, Refusal):
            response.result = result(*vehicle)
            return response
        try:
            self._start(vehicle)
        except (ConfigError, OSError) as error:
            response.result = result(Result.RESULT_OPERATION_FAILED, str(error))
            return response

        self.get_logger().info(f"spawned {vehicle.name}: {vehicle.parameters}, id {vehicle.id}")
        response.result = result(Result.RESULT_OK)
        response.entity_name = vehicle.name
        return response

    def _requested(self, request: Any) -> SpawnedVehicle | Refusal:
        """Return the vehicle that a request describes, or why there will be none."""
        codes = SpawnEntity.Response
        resource = getattr(request, "entity_resource", request)
        namespace = request.entity_namespace.strip("/")
        wanted = "/".join(filter(None, (namespace, request.name)))
        taken = _namespaces(self) | self._running.keys()

        # the request
        if not resource.uri:
            return Refusal(codes.NO_RESOURCE, f"no uri: expected {', '.join(DESCRIPTIONS)}")
        if not (request.name or request.allow_renaming) or (wanted and not is_name(wanted)):
            text = f"{wanted!r}: expected up to {MAX_NAME} letters, digits and _"
            return Refusal(codes.NAME_INVALID, text)
        if wanted in taken and not request.allow_renaming:
            return Refusal(codes.NAME_NOT_UNIQUE, f"name {wanted!r} is taken")
        if len(self._running) >= MOST_SPAWNED:
            text = f"{MOST_SPAWNED} vehicles are spawned already"
            return Refusal(Result.RESULT_OPERATION_FAILED, text)
        if self._ground.terrain is None:
            return Refusal(Result.RESULT_INCORRECT_STATE, NO_GROUND)

        # the vehicle and its place
        try:
            parameters = spawned_parameters(resource.uri)
            axes = axes_of(request.initial_pose.header.frame_id, _AXES.get)
            pose = msg_to_pose(request.initial_pose.pose, axes)
            x, y, _ = pose.position.tolist()
            check_place(self._ground.terrain, x, y)
        except PlacementError as error:
            return Refusal(codes.INVALID_POSE, str(error))
        except ConfigError as error:
            return Refusal(Result.RESULT_NOT_FOUND, str(error))

        return SpawnedVehicle(
            free_name(request.name, namespace, taken, LAND_AIR),
            parameters,
            free_number({each.vehicle.number for each in self._running.values()}),
            (x, y, float(quat_to_euler(pose.orientation)[2])),
        )

    def _delete(self, request: Any, response: Any) -> Any:
        running = self._running.pop(request.entity, None)
        if running is None:
            response.result = result(Result.RESULT_NOT_FOUND, f"entity {request.entity!r}")
            return response

        running.supervisor.stop()
        source = f"/{running.vehicle.name}/amphibious_sim_node"
        gone = VehicleStateArray(source=source, id=[running.vehicle.id], vehicle_type=[0])
        gone.header.frame_id = "map"
        gone.header.stamp = self.get_clock().now().to_msg()
        gone.position = [0.0, 0.0, 0.0]
        gone.orientation = [0.0, 0.0, 0.0, 1.0]
        self._removed.publish(gone)
        response.result = result(Result.RESULT_OK)
        return response

    # --- processes

    def _start(self, vehicle: SpawnedVehicle) -> None:
        """Start the processes of a vehicle."""
        arguments = {"map_search_path": os.pathsep.join(self._ground.search_path)}
        if self.get_parameter("use_sim_time").value:
            arguments["use_sim_time"] = "true"
        targets = self._settings.targets if self._settings.mavlink else None
        nodes = spawned_nodes(vehicle, arguments, targets)

        supervisor = node_supervisor(amphibious_processes(nodes, {}), {}, _print)
        supervisor.full_names = ()  # the name was free
        self._running[vehicle.name] = _Running(vehicle, supervisor)
        supervisor.start()

    def _poll(self) -> None:
        for running in self._running.values():
            running.supervisor.poll()

    def destroy_node(self) -> None:
        """End the processes of all vehicles."""
        supervisors = [running.supervisor for running in self._running.values()]
        if supervisors:
            with ThreadPoolExecutor(len(supervisors)) as pool:
                list(pool.map(Supervisor.stop, supervisors))
        super().destroy_node()

    def _update_diagnostics(self) -> None:
        ended = [
            f"{label} {text}"
            for running in self._running.values()
            for label, text in running.supervisor.ended_nodes()
        ]
        self._diagnostics.set_first(
            [
                (ended, ERROR, "; ".join(ended)),
                (self._ground.problem, ERROR, self._ground.problem),
                (self._ground.terrain is None, STALE, NO_MAP_YET),
                (True, OK, f"vehicles: {', '.join(self._running) or 'none'}"),
            ],
            vehicles=len(self._running),
        )


def _namespaces(node: Node) -> set[str]:
    """Return the namespaces of all nodes that can be seen.

    They are those of the nodes' services, which go with their process. Names of nodes that were
    killed may stay in the graph for good.
    """
    services = [name for name, _ in node.get_service_names_and_types()]
    ends = [name.removesuffix(_PARAMETERS) for name in services if name.endswith(_PARAMETERS)]
    return {end.rpartition("/")[0].strip("/") for end in ends}


def _print(label: str, line: str) -> None:
    print(f"{label} | {line}", flush=True)
