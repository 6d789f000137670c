# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Vehicles that come and go by simulation_interfaces, from a client's side.

A trajectory_node runs, with real DDS.
"""

from __future__ import annotations

import math
import shlex
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from fleet_harness import TerrainSource, ground, positions, receive_states

from rfly_common.ros.endpoints import GoalResult

pytestmark = pytest.mark.ros

FLEET = """
version: 1
vehicles:
  - {name: lead, id: 7, type: 50, shape: {type: line, from: [0, 0], to: [100, 0]}, speed: 10}
"""
OK = 1
NOT_FOUND = 2
FAILED = 4
TIME = 1
STATE = 2
SPAWNED = 4
ALL = 255
STOPPED = 0
PLAYING = 1
PAUSED = 2


class Client:
    """A client of one node's services."""

    def __init__(self, peer, node, fleet):
        self.peer = peer
        self.node = node
        self.fleet = fleet

    def __call__(self, service, **fields):
        from simulation_interfaces import srv

        name = "".join(word.capitalize() for word in service.split("_"))
        return self.peer.call(getattr(srv, name), f"/trajectory_node/{service}", **fields)

    def spawn(self, kind="car", x=0.0, y=0.0, z=0.0, yaw=0.0, frame="", **fields):
        from geometry_msgs.msg import PoseStamped

        pose = PoseStamped()
        pose.header.frame_id = frame
        p = pose.pose.position
        q = pose.pose.orientation
        p.x = float(x)
        p.y = float(y)
        p.z = float(z)
        q.z = math.sin(yaw / 2)
        q.w = math.cos(yaw / 2)
        return self("spawn_entity", uri=f"rfly://{kind}", initial_pose=pose, **fields)

    def names(self, **filters):
        from simulation_interfaces.msg import EntityFilters

        return list(self("get_entities", filters=EntityFilters(**filters)).entities)

    def go(self, state):
        from simulation_interfaces.msg import SimulationState

        return self("set_simulation_state", state=SimulationState(state=state)).result.result

    def state_of(self, entity):
        return self("get_entity_state", entity=entity).state


@pytest.fixture(scope="module")
def served(shared_domain_id, tmp_path_factory):
    """A client of a running node, whose fleet is one car, on `ground()`."""
    from node_harness import NodeProcess, Peer

    path = tmp_path_factory.mktemp("fleet") / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    with ExitStack() as stack:
        peer = Peer(shared_domain_id)
        stack.callback(peer.close)
        TerrainSource(peer).publish(ground())
        parameters = {"fleet": f"'{path}'", "file_folders": f"['{path.parent}']"}
        node = stack.enter_context(NodeProcess("trajectory_node", shared_domain_id, parameters))
        client = Client(peer, node, str(path))
        peer.spin_until(lambda: client("get_simulation_state").state.state == PLAYING)
        yield client


@pytest.fixture
def client(served):
    """A client of the file's fleet alone, paused at its start."""
    served.go(STOPPED)
    served("reset_simulation")
    served.go(PAUSED)
    return served


def xyz(position):
    return position.x, position.y, position.z


def test_a_vehicle_is_spawned_stands_on_the_ground_and_is_deleted(client):
    """The ground at x 30, y -20, a sample of the map, is at 6·sin(30/37)·cos(-20/29) + 0.9."""
    states = receive_states(client.peer)
    removed = client.peer.receive(*_removed_vehicles())
    answer = client.spawn(
        "car", 30.0, -20.0, 3.0, math.pi / 2, frame="map", name="taxi", entity_namespace="/city"
    )
    assert (answer.result.result, answer.entity_name) == (OK, "city/taxi")
    assert client.names() == ["lead", "city/taxi"]

    client.peer.spin_until(lambda: states and list(states[-1].id) == [7, 5001])
    assert list(states[-1].vehicle_type) == [50, 50]
    height = 6 * math.sin(30 / 37) * math.cos(20 / 29) + 0.9
    # its wheels' plane
    np.testing.assert_allclose(positions(states[-1])[1], [30.0, -20.0, height], atol=0.05)

    q = client.state_of("city/taxi").pose.orientation
    assert 2 * math.atan2(q.z, q.w) == pytest.approx(math.pi / 2, abs=0.05)

    assert client("delete_entity", entity="city/taxi").result.result == OK
    client.peer.spin_until(lambda: removed and list(states[-1].id) == [7])
    assert (list(removed[0].id), list(positions(removed[0])[0, :2])) == (
        [5001],
        pytest.approx([30.0, -20.0]),
    )

    assert client.names() == ["lead"]
    assert client("delete_entity", entity="city/taxi").result.result == NOT_FOUND


def _removed_vehicles():
    from rfly_suite.msg import VehicleStateArray

    from rfly_common.ros.qos import FLEET_IN

    return VehicleStateArray, "removed_vehicles", FLEET_IN


REFUSED = {
    "no uri": ({"uri": ""}, 104, "rfly://quadcopter"),
    "a text in place of a uri": ({"uri": "", "resource_string": "<sdf/>"}, 0, "resource_string"),
    "another format": ({"uri": "file:///tmp/robot.sdf"}, 103, "robot.sdf"),
    "a kind that is none": ({"uri": "rfly://submarine"}, NOT_FOUND, "rfly://submarine"),
    "a wrong letter": ({"uri": "rfly://car_bleu"}, NOT_FOUND, "did you mean car_blue"),
    "an object": ({"uri": "rfly://ring_target"}, NOT_FOUND, "ring_target is no vehicle"),
    "a land-air vehicle": (
        {"uri": "rfly://land_air"},
        0,
        "spawner_node spawns them (rfly up --spawner)",
    ),
    "no name": ({"name": ""}, 102, "no name"),
    "a name that is no topic's": ({"name": "1 car"}, 102, "1 car"),
    "a name that is taken": ({"name": "lead"}, 101, "'lead' is taken"),
    "a long name": ({"name": "a" * 101}, 102, "up to 100"),
    "a namespace that is none": ({"entity_namespace": "a b"}, 105, "a b"),
    "another frame": ({"frame": "moon"}, 109, "moon"),
    "off the map": ({"x": 1e4}, 109, "off the map"),
    "a drone below the ground": ({"uri": "rfly://quadcopter", "z": -50.0}, 109, "below the ground"),
    "a car in the air": ({"z": 5000.0}, 109, "stands on the ground, which is at 0 there"),
    "not a number": ({"x": math.nan}, 109, "finite"),
    "a drone beyond the sky": ({"uri": "rfly://quadcopter", "z": 1e30}, 109, "up to 1e+08"),
    "no orientation": ({"w": 0.0}, 109, "orientation has the length 0"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_spawned_is_named_with_its_code(client, why):
    from geometry_msgs.msg import PoseStamped

    given, code, text = REFUSED[why]
    given = {"name": "new", "uri": "rfly://car", **given}
    pose = PoseStamped()
    pose.header.frame_id = given.pop("frame", "")
    pose.pose.position.x = given.pop("x", 0.0)
    pose.pose.position.z = given.pop("z", 0.0)
    pose.pose.orientation.w = given.pop("w", 1.0)
    answer = client("spawn_entity", initial_pose=pose, **given)
    assert (answer.result.result, answer.entity_name) == (code, "")
    assert text in answer.result.error_message
    assert client.names() == ["lead"]


ASKED = (("quadcopter", "hawk"), ("tank", "tank"), ("car", "hawk"))


def test_names_are_chosen_where_that_is_allowed(client):
    """Names are chosen where the request allows it.

    Free numbers are added to the wanted name, or to the kind if none is wanted; ids are the lowest
    free ones.
    """
    from simulation_interfaces.msg import Resource, SpawnEntity

    states = receive_states(client.peer)
    spawned = [
        client.spawn("person", allow_renaming=True, **each).entity_name
        for each in ({}, {}, {"name": "lead"})
    ]
    assert spawned == ["person_1", "person_2", "lead_2"]
    client.peer.spin_until(lambda: states and list(states[-1].id) == [7, 5001, 5002, 5003])
    client("delete_entity", entity="person_1")
    assert client.spawn("person", allow_renaming=True).entity_name == "person_1"
    client.peer.spin_until(lambda: list(states[-1].id) == [7, 5002, 5003, 5001])
    wanted = [
        SpawnEntity(name=name, entity_resource=Resource(uri=f"rfly://{kind}"))
        for kind, name in ASKED
    ]
    for each in wanted:
        each.initial_pose.pose.position.z = 100.0
    many = client("spawn_entities", spawn_requests=wanted)
    assert many.result.result == 150
    assert [each.result.result for each in many.results] == [OK, NOT_FOUND, 101]
    assert client.names(filter="^hawk") == ["hawk"]
    refused = client("spawn_entities", spawn_requests=[SpawnEntity(name="x")] * 101)
    assert (refused.result.result, list(refused.results)) == (FAILED, [])
    assert "101 spawn_requests, expected at most 100 at once" in refused.result.error_message


def test_models_are_spawned_by_name_and_by_number(client):
    """car_blue is type 50, truck 51; 200051 is a further truck."""
    states = receive_states(client.peer)
    for name, kind in (("one", "car_blue"), ("two", "truck"), ("three", "200051")):
        assert client.spawn(kind, 20.0, 10.0, name=name).result.result == OK
    client.peer.spin_until(lambda: states and len(states[-1].id) == 4)
    assert list(states[-1].vehicle_type)[1:] == [50, 51, 200051]


def test_what_can_be_spawned_and_what_this_simulator_does(client):
    answer = client("get_spawnables", sources=["https://models.example"])
    assert answer.result.result == OK
    assert "models.example" in answer.result.error_message

    uris = [each.uri for each in answer.spawnables]
    assert {"rfly://car", "rfly://person", "rfly://quadcopter", "rfly://fixed_wing"} < set(uris)
    assert "rfly://ring_target" not in uris

    high, low = answer.spawnables[uris.index("rfly://car_blue")].spawn_bounds.points
    assert [a - b for a, b in zip(xyz(high), xyz(low), strict=True)] == pytest.approx(
        [4.3, 1.96, 1.42]
    )

    for uri in uris:
        kind = uri.removeprefix("rfly://")
        assert client.spawn(kind, z=100.0, name=kind).result.result == OK
    features = list(client("get_simulator_features").features.features)
    expected = [0, 1, 4, 6, 8, 10, 11, 12, 14, 20, 21, 22, 23, 24, 25, 26, 31, 32, 33, 50]
    assert features == expected


def test_entities_are_described_and_chosen_by_name_kind_tag_and_place(client):
    from geometry_msgs.msg import Vector3
    from simulation_interfaces.msg import Bounds, EntityCategory, TagsFilter

    client.spawn("person", 50.0, 50.0, name="anna")
    client.spawn("quadcopter", 50.0, 50.0, 80.0, name="drone_1")
    info = client("get_entity_info", entity="drone_1").info
    assert (info.category.category, info.description, list(info.tags)) == (
        1,
        "quadcopter",
        ["multirotor", "spawned"],
    )
    assert client("get_entity_info", entity="lead").info.tags == ["ground", "fleet"]
    assert client("get_entity_info", entity="nobody").result.result == NOT_FOUND
    assert client.names(filter="_[[:digit:]]+$") == ["drone_1"]
    assert client.names(categories=[EntityCategory(category=2)]) == ["anna"]
    both = {"tags": ["spawned", "ground"]}
    assert client.names(tags=TagsFilter(**both)) == ["lead", "anna", "drone_1"]
    assert client.names(tags=TagsFilter(filter_mode=1, **both)) == ["anna"]
    # 80 m up and 1 m from the centre; its box reaches 0.55 m to the side
    sphere = [Vector3(x=51.0, y=50.0, z=80.2), Vector3(x=0.5)]
    assert client.names(bounds=Bounds(type=3, points=sphere)) == ["drone_1"]
    sphere[1].x = 0.4
    assert client.names(bounds=Bounds(type=3, points=sphere)) == []
    box = [Vector3(x=60.0, y=60.0, z=30.0), Vector3(x=40.0, y=40.0, z=-30.0)]
    assert client.names(bounds=Bounds(type=1, points=box)) == ["anna"]
    found = client("get_entities_states")
    assert list(found.entities) == ["lead", "anna", "drone_1"]
    assert xyz(found.states[2].pose.position) == (50.0, 50.0, 80.0)
    from simulation_interfaces.msg import EntityFilters

    hull = client("get_entities", filters=EntityFilters(bounds=Bounds(type=2)))
    assert hull.result.result == 0
    wrong = client("get_entities", filters=EntityFilters(filter="("))
    assert (wrong.result.result, "'('" in wrong.result.error_message) == (FAILED, True)


def test_a_vehicle_is_put_elsewhere_with_a_speed_and_brakes(client):
    """A quadcopter (2 m/s²) put down at 4 m/s northwards stops after 2 s and 4 m."""
    from simulation_interfaces.msg import EntityState

    client.spawn("quadcopter", z=60.0, name="drone")
    wanted = EntityState()
    wanted.header.frame_id = "map_ned"
    wanted.pose.position.x = 20.0
    wanted.pose.position.y = 10.0
    wanted.pose.position.z = -70.0
    # level, its nose northwards
    wanted.pose.orientation.x = 1.0
    wanted.pose.orientation.w = 0.0
    wanted.twist.linear.x = 4.0
    assert client("set_entity_state", entity="drone", state=wanted).result.result == OK
    now = client.state_of("drone")
    assert xyz(now.pose.position) == pytest.approx((10.0, 20.0, 70.0))
    assert xyz(now.twist.linear) == pytest.approx((0.0, 4.0, 0.0))
    assert xyz(now.acceleration.linear) == pytest.approx((0.0, -2.0, 0.0))
    assert client("step_simulation", steps=50).result.result == OK  # 1 s
    now = client.state_of("drone")
    assert xyz(now.pose.position) == pytest.approx((10.0, 23.0, 70.0))
    assert xyz(now.twist.linear) == pytest.approx((0.0, 2.0, 0.0))
    assert client("step_simulation", steps=100).result.result == OK
    assert xyz(client.state_of("drone").pose.position) == pytest.approx((10.0, 24.0, 70.0))
    wanted.twist.linear.y = 1.0
    refused = client("set_entity_state", entity="drone", state=wanted).result
    assert (refused.result, "along its nose" in refused.error_message) == (FAILED, True)
    wanted.header.frame_id = "moon"
    refused = client("set_entity_state", entity="drone", state=wanted).result
    assert (refused.result, "moon" in refused.error_message) == (101, True)


def test_a_spawned_vehicle_follows_a_path(client):
    """A person at 1.4 m/s, 1 m/s², is after 10 s at 1.4·(10 − 0.7) m of the 20 m."""
    from geometry_msgs.msg import PoseStamped
    from nav_msgs.msg import Path

    from rfly_common.ros.qos import LATCHED

    client.spawn("person", 0.0, 40.0, name="walker")
    path = Path()
    for x in (0.0, 20.0):
        path.poses.append(PoseStamped())
        path.poses[-1].pose.position.x = x
        path.poses[-1].pose.position.y = 40.0
    publisher = client.peer.publisher(Path, "walker/follow_path", LATCHED)
    publisher.publish(path)
    client.peer.spin_until(
        lambda: client("step_simulation", steps=1) and client.state_of("walker").twist.linear.x > 0
    )
    begin = client.state_of("walker")
    client("step_simulation", steps=500)
    now = client.state_of("walker")
    done = 1.4 * 10.0 - 0.5 * (1.4 - begin.twist.linear.x) ** 2
    assert now.pose.position.x - begin.pose.position.x == pytest.approx(done, abs=0.05)
    assert client("delete_entity", entity="walker").result.result == OK
    client.peer.spin_until(lambda: publisher.get_subscription_count() == 0)
    client.peer.node.destroy_publisher(publisher)


def test_time_is_paused_stepped_stopped_and_reset(client):
    """The fleet's car goes 10 m/s from x 0; a step is 20 ms."""
    assert client.go(PAUSED) == 101
    assert client("step_simulation", steps=100).result.result == OK
    assert client.state_of("lead").pose.position.x == pytest.approx(20.0)

    assert client.go(PLAYING) == OK
    refused = client("step_simulation", steps=1).result
    assert (refused.result, "expected paused" in refused.error_message) == (FAILED, True)

    assert client.go(STOPPED) == OK
    assert client("get_simulation_state").state.state == STOPPED
    assert client.state_of("lead").pose.position.x == 0.0

    assert client.go(3) == 103
    client.go(PAUSED)
    client.spawn("car", 50.0, name="other")
    client("delete_entity", entity="lead")
    client("step_simulation", steps=100)

    assert client("reset_simulation", scope=SPAWNED).result.result == OK
    assert client.names() == []
    assert client("reset_simulation", scope=8).result.result == 0

    client("reset_simulation")
    assert client.names() == ["lead"]
    assert client.state_of("lead").pose.position.x == 0.0


def test_a_reset_of_state_puts_vehicles_back_on_their_paths(client):
    from simulation_interfaces.msg import EntityState

    client("step_simulation", steps=100)
    away = EntityState()
    away.pose.position.y = 30.0
    assert client("set_entity_state", entity="lead", state=away).result.result == OK
    assert xyz(client.state_of("lead").pose.position)[:2] == (0.0, 30.0)
    assert client("reset_simulation", scope=STATE).result.result == OK
    assert xyz(client.state_of("lead").pose.position)[:2] == pytest.approx((20.0, 0.0))
    assert client("reset_simulation", scope=TIME).result.result == OK
    assert client.state_of("lead").pose.position.x == 0.0


def test_steps_as_an_action_tell_each_and_can_be_cancelled(client):
    from rclpy.action import ActionClient
    from simulation_interfaces.action import SimulateSteps

    action = ActionClient(client.peer.node, SimulateSteps, "/trajectory_node/simulate_steps")
    client.peer.spin_until(action.server_is_ready)

    def ask(steps, told):
        future = action.send_goal_async(
            SimulateSteps.Goal(steps=steps),
            lambda m: told.append((m.feedback.completed_steps, m.feedback.remaining_steps)),
        )
        client.peer.spin_until(future.done)
        return future.result()

    def end(handle):
        future = GoalResult(handle)
        client.peer.spin_until(future.done)
        return future.result().status, future.result().result.result.result

    # a list for each goal: late feedback of one does not count for the next
    heard = []
    going = []
    assert end(ask(1, heard)) == (4, OK)  # succeeded
    # afterwards the node knows its listeners
    client.peer.spin_until(lambda: heard or (end(ask(1, heard)) and heard))
    before = client.state_of("lead").pose.position.x
    goals = 0
    told = []
    # with a goal's result rclpy forgets who listens: the last feedback may come too late
    while len(told) < 3:
        assert goals < 20
        goals = goals + 1
        told = []
        assert end(ask(20, told)) == (4, OK)
        # a topic keeps the last ten for a client that is late
        steps = [step for step, _ in told]
        assert told == [(step, 20 - step) for step in sorted(set(steps))]
    assert client.state_of("lead").pose.position.x == pytest.approx(before + 4.0 * goals)
    handle = ask(10_000_000, going)
    client.peer.spin_until(lambda: len(going) > 1)
    client.peer.spin_until(handle.cancel_goal_async().done)
    assert end(handle) == (5, FAILED)  # cancelled
    client.go(PLAYING)
    assert end(ask(3, [])) == (6, FAILED)  # aborted
    action.destroy()


def test_the_commands_of_the_page_work(client):
    """Each `ros2 service call` of the howto works in its order, with its fields."""
    import yaml
    from simulation_interfaces import srv

    page = Path(__file__).parents[3] / "docs" / "howto" / "spawn-vehicles.md"
    lines = [
        shlex.split(line)
        for line in page.read_text(encoding="utf-8").splitlines()
        if "    ros2 service call /trajectory_node" in line
    ]
    assert len(lines) == 11
    for _, _, _, name, kind, *fields in lines:
        request = getattr(srv, kind.rpartition("/")[2]).Request()
        _fill(request, yaml.safe_load(fields[0]) if fields else {})
        names = request.get_fields_and_field_types()
        answer = client(
            name.removeprefix("/trajectory_node/"),
            **{field: getattr(request, field) for field in names},
        )
        # it is paused already
        allowed = (OK, 101) if kind.endswith("SetSimulationState") else (OK,)
        assert answer.result.result in allowed, f"{name}: {answer.result.error_message}"


def _fill(message, fields):
    for name, value in fields.items():
        if isinstance(value, dict):
            _fill(getattr(message, name), value)
        else:
            setattr(message, name, value)


def test_fifty_of_three_kinds_come_and_go_without_a_trace(client):
    """Fifty vehicles of three kinds come and go five times without a trace.

    Names, ids and topics are as before, and memory does not grow.
    """
    from simulation_interfaces.msg import Resource, SpawnEntity

    def topics():
        return {name for name, _ in client.peer.node.get_topic_names_and_types()}

    def memory_kb():
        status = Path(f"/proc/{client.node.process.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmRSS:")[2].split()[0])

    wanted = [
        SpawnEntity(name=f"v{i}", entity_resource=Resource(uri=f"rfly://{kind}"))
        for i, kind in enumerate(("car", "quadcopter", "fixed_wing") * 17)
    ][:50]
    for i, each in enumerate(wanted):
        each.initial_pose.pose.position.x = 3.0 * i - 75.0
        each.initial_pose.pose.position.z = 50.0
    states = receive_states(client.peer)
    before = topics()
    memory = []
    for _ in range(5):
        assert client("spawn_entities", spawn_requests=wanted).result.result == OK
        assert client.names() == ["lead", *(f"v{i}" for i in range(50))]
        client.peer.spin_until(lambda: len(states[-1].id) == 51)
        assert list(states[-1].id) == [7, *range(5001, 5051)]
        assert client("reset_simulation", scope=SPAWNED).result.result == OK
        assert client.names() == ["lead"]
        memory.append(memory_kb())
    client.peer.spin_until(lambda: topics() == before)
    assert memory[-1] - memory[1] < 3000  # 150 vehicles


def test_what_a_fleet_in_the_place_of_another_leaves_is_removed(client):
    from rfly_suite.srv import LoadFleet

    removed = client.peer.receive(*_removed_vehicles())
    client.spawn("car", 40.0, name="taxi")
    answer = client.peer.call(LoadFleet, "/trajectory_node/load_fleet", fleet="mixed_fleet")
    assert answer.success
    client.peer.spin_until(lambda: removed)
    assert [list(message.id) for message in removed] == [[7, 5001]]
    path = client.fleet  # for the other tests
    assert client.peer.call(LoadFleet, "/trajectory_node/load_fleet", fleet=path).success


def test_one_that_keeps_clear_is_put_back_deleted_and_spawned_elsewhere(domain_id, tmp_path):
    """It follows a path aside, a reset of state ends that; a second one has its name."""
    from node_harness import NodeProcess, Peer
    from simulation_interfaces.msg import EntityState

    path = tmp_path / "lead.yaml"
    path.write_text(FLEET, encoding="utf-8")
    peer = Peer(domain_id)
    TerrainSource(peer).publish(ground())
    with NodeProcess("trajectory_node", domain_id, {"fleet": f"'{path}'", "avoidance": "true"}):
        client = Client(peer, None, str(path))
        states = receive_states(peer)
        peer.spin_until(lambda: states)
        client.go(PAUSED)
        client("step_simulation", steps=50)
        before = xyz(client.state_of("lead").pose.position)
        away = EntityState()
        away.pose.position.y = 30.0
        assert client("set_entity_state", entity="lead", state=away).result.result == OK
        assert xyz(client.state_of("lead").pose.position)[:2] == pytest.approx((0.0, 30.0))
        assert client("reset_simulation", scope=STATE).result.result == OK
        assert xyz(client.state_of("lead").pose.position) == pytest.approx(before)

        # the last one goes, and comes elsewhere
        assert client("delete_entity", entity="lead").result.result == OK
        assert client("get_entities_states").states == []
        for x in (50.0, 20.0):
            assert client.spawn("car", x, 40.0, name="taxi").result.result == OK
            place = xyz(client.state_of("taxi").pose.position)
            assert place[:2] == pytest.approx((x, 40.0))
            assert client("delete_entity", entity="taxi").result.result == OK
    peer.close()


def test_one_that_keeps_clear_is_told_and_moved_as_it_is(domain_id, tmp_path):
    """It stands on the lead's way, which waits or goes round; then it is put aside."""
    from node_harness import NodeProcess, Peer

    path = tmp_path / "lead.yaml"
    path.write_text(FLEET, encoding="utf-8")
    peer = Peer(domain_id)
    TerrainSource(peer).publish(ground())
    with NodeProcess("trajectory_node", domain_id, {"fleet": f"'{path}'", "avoidance": "true"}):
        client = Client(peer, None, str(path))
        states = receive_states(peer)
        peer.spin_until(lambda: states)
        assert client.spawn("car", 50.0, 0.0, name="taxi").result.result == OK
        peer.spin_until(lambda: np.hypot(*(positions(states[-1])[0, :2] - (100.0, 0.0))) < 3.0)
        both = np.array([positions(m)[:, :2] for m in states if len(m.id) == 2])
        assert np.hypot(*(both[:, 0] - both[:, 1]).T).min() > 4.0
        np.testing.assert_allclose(both[:, 1], np.tile((50.0, 0.0), (len(both), 1)), atol=1e-6)

        lead = client.state_of("lead").pose.position
        np.testing.assert_allclose(xyz(lead), positions(states[-1])[0], atol=0.2)
        aside = client.state_of("taxi")
        aside.pose.position.x = 20.0
        aside.pose.position.y = 30.0
        aside.pose.position.z = 0.0
        assert client("set_entity_state", entity="taxi", state=aside).result.result == OK
        peer.spin_until(lambda: np.hypot(*(positions(states[-1])[1, :2] - (20.0, 30.0))) < 0.1)
    peer.close()
