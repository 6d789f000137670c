# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Run control of trajectory_node: real processes, real DDS.

Every state is compared with the circle's own formula.
"""

from __future__ import annotations

import itertools
import math
import signal
import time
from contextlib import ExitStack

import numpy as np
import pytest
from fleet_harness import (
    TerrainSource,
    ground,
    positions,
    receive_diagnostics,
    receive_states,
    seconds,
    stamp,
    told,
)

pytestmark = pytest.mark.ros

RADIUS = 120.0
SPEED = 10.0
RATE = SPEED / RADIUS
"""Angular rate about the centre, rad/s."""
RING = """
version: 1
vehicles:
  - {name: car, id: 11, type: 3, count: COUNT, spacing: even, speed: 10,
     shape: {type: circle, center: [0, 0], radius: 120}}
"""


def ring_file(folder, count, name="ring"):
    path = folder / f"{name}.yaml"
    path.write_text(RING.replace("COUNT", str(count)).replace("car", name), encoding="utf-8")
    return str(path)


def angles(message):
    """Return the angle of each vehicle about the centre, in 0 … 2π."""
    p = positions(message)
    return np.mod(np.arctan2(p[:, 1], p[:, 0]), 2 * math.pi)


def expected_angles(message, start, count, first_id=11):
    """Return the angles of the ring's vehicles from the message's stamp alone.

    Copy k starts k parts of the ring back.
    """
    elapsed = max(0.0, stamp(message.header) - start)
    part = 2 * math.pi / count
    return np.mod(RATE * elapsed - part * (np.asarray(message.id) - first_id), 2 * math.pi)


def off_by(message, start, count):
    """Return the largest distance along the ring of a vehicle from its place, m."""
    difference = angles(message) - expected_angles(message, start, count)
    return RADIUS * float(np.max(np.abs(np.mod(difference + math.pi, 2 * math.pi) - math.pi)))


class Starts:
    """Starts published on fleet_start, each once: every node publishes the agreed one."""

    def __init__(self, peer):
        from builtin_interfaces.msg import Time

        from rfly_common.ros.qos import LATCHED

        self._times = []
        peer.node.create_subscription(Time, "fleet_start", self._take, LATCHED)

    def _take(self, time):
        if time not in self._times:
            self._times.append(time)

    def __len__(self):
        return len(self._times)

    def __getitem__(self, index):
        return self._times[index]


def trigger(peer, name, node="trajectory_node"):
    from std_srvs.srv import Trigger

    answer = peer.call(Trigger, f"/{node}/{name}")
    assert answer.success
    return answer.message


def set_time_scale(peer, value):
    """Set the parameter and return (successful, reason)."""
    from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
    from rcl_interfaces.srv import SetParameters

    value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
    parameter = Parameter(name="time_scale", value=value)
    (result,) = peer.call(
        SetParameters, "/trajectory_node/set_parameters", parameters=[parameter]
    ).results
    return result.successful, result.reason


@pytest.fixture
def driving(domain_id, tmp_path):
    """A peer of one node that drives a ring of three, its folder, states and diagnostics."""
    from node_harness import NodeProcess, Peer

    peer = Peer(domain_id)
    TerrainSource(peer).publish(ground())
    states = receive_states(peer)
    diagnostics = receive_diagnostics(peer)
    parameters = {
        "fleet": f"'{ring_file(tmp_path, 3)}'",
        "start_time": "1",
        "file_folders": f"['{tmp_path}']",
    }
    node = NodeProcess("trajectory_node", domain_id, parameters)
    with node:
        peer.spin_until(lambda: states)
        yield peer, tmp_path, states, diagnostics
    peer.close()


def test_pause_start_and_time_scale_never_make_a_vehicle_jump(driving):
    """A car drives from one state to the next as far as its speed says.

    The speed is 0, 10, 25 or 5 m/s; the velocity in the message is that of the positions.
    """
    peer, _, states, diagnostics = driving

    def drive(speed):
        """Wait for ten states at a speed."""
        count = len(states)

        def settled():
            last = states[-10:]
            return len(states) > count + 10 and all(
                abs(speed_of(message) - speed) < 1e-4 for message in last
            )

        peer.spin_until(settled)

    states.clear()
    peer.spin_until(lambda: states)
    drive(10.0)
    assert trigger(peer, "pause").startswith("stands still at fleet time ")
    drive(0.0)
    assert (
        peer.spin_until(
            lambda: (d := told(diagnostics)) and d[2]["run"] == "paused" and d[2]["pace"]
        )
        == "0"
    )
    assert set_time_scale(peer, 2.5) == (True, "")
    drive(0.0)
    assert trigger(peer, "start").startswith("drives on from fleet time ")
    drive(25.0)
    assert set_time_scale(peer, 0.5) == (True, "")
    drive(5.0)
    assert set_time_scale(peer, 0.0) == (True, "")
    drive(0.0)
    successful, reason = set_time_scale(peer, -1.0)
    assert not successful
    assert "time_scale" in reason
    assert set_time_scale(peer, 1.0) == (True, "")
    drive(10.0)
    for before, after in itertools.pairwise(states):
        seconds_between = stamp(after.header) - stamp(before.header)
        way = (
            RADIUS * np.mod(angles(after) - angles(before) + math.pi, 2 * math.pi)
            - RADIUS * math.pi
        )
        speeds = speed_of(before), speed_of(after)
        assert np.all(way > min(speeds) * seconds_between - 1e-4)
        assert np.all(way < max(speeds) * seconds_between + 1e-4)


def speed_of(message):
    """Return the first vehicle's horizontal speed, m/s; absent velocities are zeros."""
    velocity = np.asarray(message.velocity).reshape(-1, 3)
    return float(np.hypot(*velocity[0, :2])) if velocity.size else 0.0


def test_a_reset_begins_the_next_run_at_a_whole_second(driving):
    """Cars stand at their starts until the next run begins, at a whole second.

    fleet_start gives the second and the number of the run. A paused fleet waits at its start until
    it is started.
    """
    peer, _, states, _ = driving
    starts = Starts(peer)
    peer.spin_until(lambda: starts)
    run = starts[-1].nanosec
    assert "starts anew at" in trigger(peer, "reset")
    peer.spin_until(lambda: len(starts) == 2)
    assert starts[1].nanosec == run + 1
    start = seconds(starts[1])
    states.clear()
    peer.spin_until(lambda: states and stamp(states[-1].header) > start + 0.5)
    # one that was on its way when the answer came may still belong to the run before
    assert max(off_by(message, start, 3) for message in states[1:]) < 1e-5

    trigger(peer, "pause")
    assert trigger(peer, "reset") == "is at its beginning and paused: call start"
    peer.spin_until(
        lambda: len(starts) == 3 and stamp(states[-1].header) > seconds(starts[2]) + 0.2
    )
    assert off_by(states[-1], 1e10, 3) < 1e-9
    trigger(peer, "start")
    peer.spin_until(lambda: speed_of(states[-1]) > 9.0)
    assert off_by(states[-1], 1e10, 3) < 5.0


def test_another_fleet_is_loaded_and_a_bad_one_is_not(driving):
    """A bad fleet is named by the service and a diagnostic, and the ring drives on.

    A good one begins at its start. Topics of the old names go, those of the new ones come; a name
    in both fleets keeps its topics.
    """
    from rfly_suite.srv import LoadFleet

    peer, folder, states, diagnostics = driving
    starts = Starts(peer)
    bad = folder / "bad.yaml"
    bad.write_text("version: 1\nvehicles: [{id: 1, tpye: 3}]\n", encoding="utf-8")
    peer.spin_until(lambda: starts)
    for fleet, text in (
        (str(bad), "bad.yaml', line 2: cannot be used"),
        ("no_such_fleet", "file_folders; shipped: demo_convoy, "),
    ):
        answer = peer.call(LoadFleet, "/trajectory_node/load_fleet", fleet=fleet)
        assert (answer.success, answer.vehicles) == (False, 3)
        assert text in answer.message
    last = "the last load failed, the fleet before it drives on: fleet 'no_such_fleet'"
    assert peer.spin_until(lambda: (d := told(diagnostics)) and d[1].startswith(last) and d)[0] == 2
    count = len(states)
    peer.spin_until(lambda: len(states) > count + 5)
    assert list(states[-1].id) == [11, 12, 13]
    assert len(starts) == 1

    new = folder / "new.yaml"
    new.write_text(
        "version: 1\ndefaults: {type: 3, speed: 10, shape: {type: circle, center: [0, 0], radius: "
        "120}}\n"
        "vehicles: [{name: ring_2, id: 11}, {name: other, id: 7}]\n",
        encoding="utf-8",
    )
    answer = peer.call(LoadFleet, "/trajectory_node/load_fleet", fleet=str(new))
    assert (answer.success, answer.vehicles) == (True, 2)
    peer.spin_until(lambda: len(starts) == 2 and list(states[-1].id) == [11, 7])
    start = seconds(starts[1])
    peer.spin_until(lambda: stamp(states[-1].header) > start + 0.2)
    elapsed = max(0.0, stamp(states[-1].header) - start)
    np.testing.assert_allclose(angles(states[-1]), RATE * elapsed, atol=1e-7)
    expected = {"/ring_2/pose", "/ring_2/path", "/other/pose", "/other/path"}
    peer.spin_until(lambda: vehicle_topics(peer) == expected)
    assert (
        peer.spin_until(lambda: (d := told(diagnostics)) and d[0] == 0 and d)[2]["vehicles"] == "2"
    )


def vehicle_topics(peer):
    """Return the topics of single vehicles that have a publisher."""
    names = (
        name
        for name, _ in peer.node.get_topic_names_and_types()
        if name.endswith(("/pose", "/path"))
    )
    return {name for name in names if peer.node.count_publishers(name)}


@pytest.mark.exhaustive
def test_shards_that_are_killed_and_started_again_are_in_phase(domain_id, tmp_path):
    """Two nodes that start at once agree, and each joins in phase after it was killed.

    One is killed and started again, then the other: each joins where its cars should be, because
    the other serves the start. A reset of one resets the other, too.
    """
    from node_harness import NodeProcess, Peer

    file = ring_file(tmp_path, 5)
    peer = Peer(domain_id)
    TerrainSource(peer).publish(ground())
    states = receive_states(peer)
    starts = Starts(peer)

    nodes = {}

    def start_shard(i):
        parameters = {"fleet": f"'{file}'", "shard": f"'{i}/2'"}
        nodes[i] = stack.enter_context(
            NodeProcess("trajectory_node", domain_id, parameters, "-r", f"__node:=s{i}")
        )

    def of(i):
        return [message for message in states if message.source == f"/s{i}"]

    def assert_in_phase(start):
        """Check for a second of each that all five cars, each from one node, are in place."""
        states.clear()
        peer.spin_until(lambda: of(0) and of(1))
        begin = max(start, stamp(states[0].header))
        peer.spin_until(lambda: all(stamp(of(i)[-1].header) > begin + 1.0 for i in (0, 1)))
        assert [list(of(i)[-1].id) for i in (0, 1)] == [[11, 12], [13, 14, 15]]
        worst, who = max((off_by(message, start, 5), message.source) for message in states)
        assert worst < 1e-5, f"{who} is off by {worst} m"

    with ExitStack() as stack:
        stack.callback(peer.close)
        start_shard(0)
        start_shard(1)
        peer.spin_until(lambda: of(0) and of(1) and len(starts))
        peer.spin_until(
            lambda: all(off_by(of(i)[-1], min(map(seconds, starts)), 5) < 1e-5 for i in (0, 1))
        )
        start = min(map(seconds, starts))
        assert_in_phase(start)
        for i in (0, 1):
            nodes[i].process.send_signal(signal.SIGKILL)
            nodes[i].process.wait()
            killed = time.time()
            start_shard(i)

            def joined(i=i, killed=killed):
                """Return whether a state from after the kill is in phase."""
                last = of(i)[-1]
                return stamp(last.header) > killed and off_by(last, start, 5) < 1e-5

            # on a machine where all are slow to be found it may begin alone, until it hears of the
            # other
            peer.spin_until(joined)
            assert_in_phase(start)
        told = len(starts)
        trigger(peer, "reset", "s1")
        peer.spin_until(lambda: len(starts) == told + 1)
        assert seconds(starts[-1]) > start + 4.0
        peer.spin_until(
            lambda: all(off_by(of(i)[-1], seconds(starts[-1]), 5) < 1e-5 for i in (0, 1))
        )
        assert_in_phase(seconds(starts[-1]))
