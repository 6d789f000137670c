# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""mavlink_hil_node with a stand-in for an autopilot and the simulation, through real sockets."""

from __future__ import annotations

import contextlib
import math

import pytest
from hil_double import HilDouble
from marks import exhaustively

pytestmark = [pytest.mark.ros, pytest.mark.needs("pymavlink")]


@contextlib.contextmanager
def simulation(domain_id, world, **parameters):
    """Yield a peer, both nodes in lock-step, and the port of mavlink_hil_node."""
    from node_harness import NodeProcess, Peer

    world = {"lock_step": "true", "real_time_factor": "0.0", **world}
    parameters = {"lock_step": "true", "port": "0", **parameters}
    with (
        NodeProcess("amphibious_sim_node", domain_id, world) as simulator,
        NodeProcess("mavlink_hil_node", domain_id, parameters) as node,
    ):
        peer = Peer(domain_id)
        try:
            peer.spin_until(lambda: "stands on" in simulator.output)
            peer.spin_until(lambda: "listening for" in node.output)
            yield peer, simulator, node, int(node.output.split("tcp 127.0.0.1:")[1].split()[0])
        finally:
            peer.close()
        assert (simulator.stop(), node.stop()) == (0, 0), simulator.output + node.output


@contextlib.contextmanager
def autopilot(*arguments, **options):
    double = HilDouble(*arguments, **options)
    try:
        yield double
    finally:
        double.close()


def status(told):
    """Return the values of /diagnostics."""
    from node_harness import diagnostic

    return (diagnostic(told, "mavlink") or (0, "", {}))[2]


def diagnostics(peer):
    from diagnostic_msgs.msg import DiagnosticArray

    from rfly_common.ros.qos import STATE_OUT

    return peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)


def place(odometry):
    position = odometry.pose.pose.position
    return position.x, position.y, position.z


@pytest.mark.parametrize("armed", [False, exhaustively(True)])
def test_a_disarmed_vehicle_stays_on_its_slope(domain_id, armed):
    """Zeros of a disarmed autopilot brake, those of an armed one coast down the hill."""
    from nav_msgs.msg import Odometry

    from rfly_common.ros.qos import sensor_qos

    with simulation(domain_id, {"scenario": "hills"}) as (peer, _, _, port):
        truth = peer.receive(Odometry, "ground_truth/odom", sensor_qos(True))
        with autopilot(port, armed=armed) as double:
            peer.spin_until(lambda: double.answered and double.answered[-1] > 3_000_000)
    start, end = (place(message) for message in (truth[0], truth[-1]))
    moved = math.dist(start, end)
    assert (moved > 1.0) if armed else (moved < 0.02)


def counting(time_us):
    """Return controls; the first one says when they were computed."""
    return [(time_us // 1000 % 1000) / 2000, *[0.0] * 9, 1.0, *[0.0] * 5]


@pytest.mark.exhaustive
def test_an_autopilot_that_answers_every_fourth_tick_is_waited_for_there(domain_id):
    """Ticks between the answers have the controls of the last answer, and cost no time.

    An unanswered tick that is waited for costs 1 s, so 3 s of simulation would take ten minutes.
    """
    from rfly_suite.msg import RotorCommand

    from rfly_common.ros.qos import COMMANDS

    with simulation(domain_id, {"ground": "level"}) as (peer, _, node, port):
        told = diagnostics(peer)
        rotors = peer.receive(RotorCommand, "cmd/rotors", COMMANDS)
        with autopilot(port, counting, period_us=16_000) as double:
            peer.spin_until(lambda: status(told).get("answers") == "every 4th tick")
            went_on = status(told)["went_on"]
            begin_us = double.answered[-1]
            rotors.clear()
            peer.spin_until(lambda: double.answered[-1] > begin_us + 3_000_000)
            assert status(told)["went_on"] == went_on
            assert "answers every 4th tick; the ticks between are not waited for" in node.output
            assert set(map(int.__sub__, double.times[1:], double.times)) == {4000}

            # a mode with another rate, and another one that is no whole number of ticks
            for period_us, text in (
                (0, "every tick"),
                (10_000, "2 of 5 ticks"),
                (8_000, "every 2nd tick"),
            ):
                double.period_us = period_us
                peer.spin_until(lambda text=text: status(told).get("answers") == text)

    # each tick's command is that of the last answer
    commands = [
        (message.header.stamp.sec * 1000 + message.header.stamp.nanosec // 1_000_000, message)
        for message in rotors
    ]
    of_the_rate = [each for each in commands if each[0] * 1000 <= begin_us + 3_000_000]
    assert len(of_the_rate) > 300
    for stamp_ms, message in of_the_rate[10:]:
        computed_ms = stamp_ms // 16 * 16
        assert message.value[0] == pytest.approx(350.0 * counting(computed_ms * 1000)[0])


def test_the_autopilots_time_goes_on_when_the_simulations_is_reset(domain_id):
    """PX4 would hang if its time went back; the vehicle is back at the start all the same."""
    from nav_msgs.msg import Odometry
    from simulation_interfaces.msg import Result
    from simulation_interfaces.srv import ResetSimulation

    from rfly_common.ros.qos import sensor_qos

    def drive(_time_us):
        return [0.0] * 9 + [0.3] + [0.0] * 6

    with simulation(domain_id, {"ground": "level"}) as (peer, _, _, port):
        truth = peer.receive(Odometry, "ground_truth/odom", sensor_qos(True))
        with autopilot(port, drive, period_us=8_000) as double:
            peer.spin_until(lambda: truth and place(truth[-1])[0] > 2.0)
            assert len(double.resets) == 1  # the first state

            response = peer.call(ResetSimulation, "amphibious_sim_node/reset_simulation", scope=0)
            assert response.result.result == Result.RESULT_OK
            peer.spin_until(lambda: len(double.resets) == 2)
            truth.clear()
            peer.spin_until(lambda: truth and place(truth[-1])[0] > 2.0)

            assert place(truth[0])[0] < 2.0
            assert truth[0].header.stamp.sec < 2
            assert set(map(int.__sub__, double.times[1:], double.times)) == {4000}
            assert double.answered[-1] > double.resets[1] + 1_000_000


@pytest.mark.exhaustive
def test_a_slow_autopilot_with_a_rate_of_its_own_drives_the_same_way(domain_id):
    """Poses depend on simulated time alone, bit for bit, also at 100 Hz with sensors at 250 Hz.

    The drive begins when the rhythm is known: until then an answer may be too late, and the brakes
    hold with and without one.
    """
    from nav_msgs.msg import Odometry

    from rfly_common.ros.qos import sensor_qos

    def drive(time_us):
        after_us = time_us - 1_000_000
        drive = 0.3 * (after_us > 0) + 1e-8 * max(after_us, 0)
        brake = float(after_us <= 0)
        return [0.0] * 9 + [drive, brake] + [0.0] * 5

    runs = []
    for pause_s in (0.0, 0.003):
        with simulation(domain_id, {"ground": "level", "seed": "3"}) as (peer, _, node, port):
            truth = peer.receive(Odometry, "ground_truth/odom", sensor_qos(True))
            with autopilot(port, drive, period_us=10_000, pause_s=pause_s) as double:
                peer.spin_until(lambda double=double: double.times and double.times[-1] > 3_000_000)
            assert "answers 2 of 5 ticks" in node.output
        stamps = [message.header.stamp for message in truth]
        runs.append(
            {(at.sec, at.nanosec): place(each) for at, each in zip(stamps, truth, strict=True)}
        )

    common = runs[0].keys() & runs[1].keys()
    assert len(common) > 200
    assert [at for at in sorted(common) if runs[0][at] != runs[1][at]] == []
    assert max(runs[0][at][0] for at in common) > 0.5
