# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""spawner_node by DDS: land-air vehicles come and go, and ground stations meet them by UDP."""

from __future__ import annotations

import math
import shlex
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import yaml

pytestmark = pytest.mark.ros

QUADROTOR = 2
"""MAV_TYPE of four rotors."""


@pytest.fixture
def start(peer, domain_id, monkeypatch):
    """Return a function that starts spawner_node on level ground, 500 m above the sea."""
    from node_harness import NodeProcess
    from rfly_suite.msg import TerrainMap

    from rfly_common.ros.qos import LATCHED
    from rfly_terrain.height_map.height_map import HeightMap
    from rfly_terrain.ros.terrain_msgs import height_map_to_msg

    level = HeightMap(
        np.zeros((41, 41)), origin_x=-200.0, origin_y=-200.0, step_x=10.0, step_y=10.0, name="level"
    )
    message = height_map_to_msg(level, (47.0, 8.0, 500.0), 1, 10**9)
    peer.node.create_publisher(TerrainMap, "terrain_map", LATCHED).publish(message)

    with ExitStack() as stack:
        yield lambda **parameters: stack.enter_context(
            NodeProcess("spawner_node", domain_id, parameters)
        )


def request(name, uri, x=0.0, y=0.0, **more):
    """Return the fields of a request in the installed version of simulation_interfaces."""
    from geometry_msgs.msg import Point, Pose, PoseStamped
    from simulation_interfaces.srv import SpawnEntity

    pose = PoseStamped(pose=Pose(position=Point(x=x, y=y)))
    fields = {"name": name, "initial_pose": pose, **more}
    if hasattr(SpawnEntity.Request(), "uri"):
        return {**fields, "uri": uri}
    from simulation_interfaces.msg import Resource

    return {**fields, "entity_resource": Resource(uri=uri)}


def call_of_the_page(name):
    """Return the fields of a command in the howto, read by its service's name."""
    page = Path(__file__).parents[3] / "docs" / "howto" / "spawn-vehicles.md"
    (line,) = (
        line for line in page.read_text("utf-8").splitlines() if f"/spawner_node/{name} " in line
    )
    return yaml.safe_load(shlex.split(line)[-1])


def spawn(peer, *about, **more):
    from simulation_interfaces.srv import SpawnEntity

    return peer.call(SpawnEntity, "/spawner_node/spawn_entity", **request(*about, **more))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_spawned_vehicle_is_a_mavlink_vehicle_until_it_is_deleted(start, peer):
    from mavlink_station import StationSocket
    from rfly_suite.msg import VehicleMode, VehicleStateArray
    from simulation_interfaces.srv import DeleteEntity

    from rfly_common.ros.qos import FLEET_IN, LATCHED

    shown = peer.receive(VehicleStateArray, "/vehicle_states", FLEET_IN)
    removed = peer.receive(VehicleStateArray, "/removed_vehicles", FLEET_IN)
    with StationSocket(peer) as station:
        node = start(mavlink="true", targets=f"['127.0.0.1:{station.port}']")
        wanted = call_of_the_page("spawn_entity")
        place = wanted["initial_pose"]["pose"]["position"]
        about = (wanted["name"], wanted["uri"], place["x"], place["y"])
        peer.spin_until(lambda: spawn(peer, *about).result.result == 1)

        # it stands where it was put, by its GPS once that has come
        def is_there():
            there = station.last("GLOBAL_POSITION_INT")
            if there is None:
                return False
            east = math.radians(there.lon * 1e-7 - 8.0) * 6_388_000 * math.cos(math.radians(47.0))
            north = math.radians(there.lat * 1e-7 - 47.0) * 6_367_000
            return math.hypot(east + 150.0, north + 50.0) < 8.0

        try:
            peer.spin_until(is_there)
        except AssertionError:
            raise AssertionError(node.output) from None
        # its camera has heartbeats too
        peer.spin_until(lambda: station.last("HEARTBEAT").type == QUADROTOR)
        assert station.last("HEARTBEAT").get_srcSystem() == 21
        peer.spin_until(lambda: shown)
        assert list(shown[-1].id) == [621]
        assert shown[-1].position[:2] == pytest.approx([-150.0, -50.0], abs=0.5)

        # it begins to take off by MAVLink; a host that is too slow for its sensors aborts that soon
        own = "/mule/mode"
        modes = peer.receive(VehicleMode, own, LATCHED)
        height = [math.nan] * 6 + [station.last("GLOBAL_POSITION_INT").alt * 1e-3 + 3.0]

        def takes_off():
            station.command(400, 1.0, system=21)
            station.command(22, *height, system=21)
            return any(message.mode == "TAKEOFF" for message in modes)

        peer.spin_until(takes_off)

        # and leaves
        leaving = call_of_the_page("delete_entity")
        gone = peer.call(DeleteEntity, "/spawner_node/delete_entity", **leaving)
        assert gone.result.result == 1
        peer.spin_until(lambda: removed)
        assert list(removed[-1].id) == [621]
        # by its topics: DDS may show a name for good if its last message comes after its end
        topics = peer.node.get_topic_names_and_types
        peer.spin_until(
            lambda: not any(topic.startswith("/mule/") and topic != own for topic, _ in topics())
        )
        assert node.stop() == 0


def test_what_cannot_be_spawned_is_refused_with_a_reason(start, peer):
    from simulation_interfaces.srv import DeleteEntity, GetSpawnables, SpawnEntity

    codes = SpawnEntity.Response
    start()
    listed = peer.call(GetSpawnables, "/spawner_node/get_spawnables").spawnables
    uris = [getattr(each, "entity_resource", each).uri for each in listed]
    assert {"rfly://land_air", "rfly://full", "rfly://scale_quad"} <= set(uris)

    # the ground comes first
    peer.spin_until(
        lambda: spawn(peer, "a", "rfly://car").result.error_message.startswith("'rfly://car'")
    )
    off = spawn(peer, "a", "rfly://full", 900.0).result
    assert (off.result, "off the map" in off.error_message) == (codes.INVALID_POSE, True)
    assert spawn(peer, "1st", "rfly://full").result.result == codes.NAME_INVALID
    assert spawn(peer, "", "rfly://full").result.result == codes.NAME_INVALID
    assert spawn(peer, "a", "").result.result == codes.NO_RESOURCE
    unknown = peer.call(DeleteEntity, "/spawner_node/delete_entity", entity="a").result
    assert unknown.error_message == "entity 'a'"


def test_a_name_is_taken_as_long_as_a_node_serves_in_its_namespace(peer):
    """The name of a node that was killed may stay in the graph; its services go."""
    from rclpy.node import Node

    from rfly_bringup.ros.spawner_node import _namespaces

    lives = Node("amphibious_sim_node", namespace="/a/live", context=peer.node.context)
    peer.spin_until(lambda: _namespaces(peer.node) == {"", "a/live"})
    lives.destroy_node()
    peer.spin_until(lambda: _namespaces(peer.node) == {""})
