# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Betaflight's own firmware flies the quad vehicle, on the wall clock, through its own ports.

The ports are fixed in the firmware: each flight has a session of its own, one after the other on
this machine.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import signal
import socket
import time
from pathlib import Path

import claims
import numpy as np
import pytest
from amphibious_cases import slower_imu
from node_harness import PATIENCE, NodeProcess, Peer, diagnostic

from rfly_amphibious import AmphibiousModel, SensorParameters, VehicleParameters
from rfly_amphibious.autopilots.betaflight_loop import BetaflightLoop, fast_imu
from rfly_amphibious.autopilots.betaflight_packets import MOTOR_PORT
from rfly_amphibious.autopilots.betaflight_session import (
    BetaflightSession,
    find_firmware,
    shipped_settings,
)
from rfly_amphibious.control.modes import Mode
from rfly_amphibious.simulation.simulation import Simulation
from rfly_common.errors import AutopilotError
from rfly_common.frames import rotation_matrix
from rfly_terrain.height_map.height_map import HeightMap

pytestmark = pytest.mark.slow

GUST = 5.0
HOVER_TIME = 2.5
GUST_TIME = 2.0
PARAMS = VehicleParameters.load("scale_quad")


def hills():
    """Return hills up to 10 m high, with waves 80 m long; the slope at the start is 5.2°."""
    x = np.arange(-40.0, 41.0, 2.0)
    heights = 10.0 + 1.2 * np.sin(x / 12.7)[:, None] + 0.8 * np.sin(x / 9.0)[None, :]
    return HeightMap(heights, origin_x=-40.0, origin_y=-40.0, step_x=2.0, step_y=2.0)


def euler(orientation):
    """Return roll, pitch, yaw in degrees, (3,), of x y z w."""
    matrix = rotation_matrix(orientation)
    roll = math.atan2(matrix[2, 1], matrix[2, 2])
    pitch = -math.asin(matrix[2, 0])
    return np.degrees((roll, pitch, math.atan2(matrix[1, 0], matrix[0, 0])))


def runs(pid):
    """Return whether there is such a process, and it has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Recorder:
    """Recorder of a loop: the truth, and the firmware's reports."""

    def __init__(self, session, noise):
        sensors = fast_imu(SensorParameters.load("scale_quad"))
        start = (4.0, -3.0, 0.5)
        self.simulation = Simulation(AmphibiousModel(PARAMS, hills()), sensors, start, noise=noise)
        self.session = session
        self.loop = BetaflightLoop(self.simulation, session)
        self.flight = self.loop.flight
        self.rows = []
        self.attitude = None
        self.target = None

    def each(self):
        if self.target is not None:
            self.flight.set_target(self.target)
        state = self.simulation.state
        attitude = self.session.attitude
        if attitude is not self.attitude:
            self.attitude = attitude
            self.rows.append(
                (
                    state.time,
                    *state.position,
                    *euler(state.orientation),
                    *np.degrees(attitude),
                )
            )

    def until(self, seconds, condition):
        """Return whether the condition came true within some seconds of simulation time."""

        def check():
            self.each()
            return condition()

        return self.loop.run(seconds, check)

    def take_off(self):
        """Fly to 0.5 m above the ground, armed through the radio."""
        ready = self.until(
            PATIENCE,
            lambda: not self.flight.missing and not self.session.status.arming_disable_flags,
        )
        assert ready, (self.flight.missing, self.session.status)
        assert self.flight.request("arm") == ""
        assert not self.session.status.armed
        assert self.flight.request("takeoff") == ""
        assert self.until(8.0, lambda: self.flight.mode is Mode.FLIGHT), self.flight.mode
        assert self.session.status.armed

    def history(self, begin=-math.inf):
        rows = np.array(self.rows)
        return rows[rows[:, 0] >= begin]


@contextlib.contextmanager
def free_ports():
    """Hold the firmware's ports on this machine; skip if there is no firmware."""
    try:
        find_firmware()
    except AutopilotError as error:
        pytest.skip(str(error))
    with claims.turn(claims.BETAFLIGHT_PORTS):
        yield


@contextlib.contextmanager
def started(folder):
    with free_ports():
        with BetaflightSession(shipped_settings("scale_quad"), folder) as running:
            yield running
        assert not runs(running.pid)


@pytest.fixture
def firmware_ports():
    with free_ports():
        yield


@pytest.fixture
def session(tmp_path):
    with started(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def flown(tmp_path_factory):
    """Record a flight: take-off from the hill's side, hover, a gust, landing.

    There is garbage at the motors' port. The firmware has ended afterwards.
    """
    with started(tmp_path_factory.mktemp("betaflight")) as session:
        recorder = Recorder(session, noise=False)  # what is left of differences is the firmware's
        recorder.take_off()

        # hover
        recorder.begin = recorder.simulation.time
        recorder.target = np.add(recorder.loop.estimate.position, (0.0, 0.0, 1.0))
        recorder.until(HOVER_TIME, lambda: False)

        # garbage, and a gust
        recorder.gust_time = recorder.simulation.time
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for data in (b"", b"\xff" * 16, b"\x00" * 15, os.urandom(1400)):  # 0xff: not a number
                stranger.sendto(data, ("127.0.0.1", MOTOR_PORT))
        recorder.simulation.wind_disturbance = np.array((0.0, GUST, 0.0))
        recorder.until(GUST_TIME, lambda: False)
        recorder.simulation.wind_disturbance = np.zeros(3)
        recorder.calm_time = recorder.simulation.time
        recorder.until(1.5, lambda: False)

        # landing
        recorder.land_time = recorder.simulation.time
        recorder.target = None
        assert recorder.flight.request("land") == ""
        recorder.until(14.0, lambda: recorder.flight.mode is Mode.DRIVE)
        recorder.until(2.0, lambda: not session.status.armed)
        return recorder


def test_it_takes_off_from_a_slope_hovers_and_lands(flown):
    simulation = flown.simulation
    assert not simulation.crashed
    assert flown.flight.mode is Mode.DRIVE
    assert not flown.session.status.armed

    history = flown.history()
    ground = simulation.model.terrain.altitude(*simulation.start.position[:2])
    assert history[:, 3].max() > ground + PARAMS.origin_height + 1.0
    standing = (
        simulation.model.terrain.altitude(*simulation.state.position[:2]) + PARAMS.origin_height
    )
    assert simulation.state.position[2] == pytest.approx(standing, abs=0.05)
    assert np.linalg.norm(simulation.state.velocity) < 0.05

    hover = flown.history(flown.gust_time - 1.0)
    hover = hover[hover[:, 0] < flown.gust_time]
    assert np.ptp(hover[:, 3]) < 0.5
    assert np.abs(hover[:, 4:6]).max() < 5.0


def test_a_gust_is_held(flown):
    """The vehicle leans against the wind.

    The drag at 5 m/s is 4.5 % of the weight: rotors 4 · 0.0015 · 247 · 5, body 0.6 · 5 + 3.1, N.
    """
    drag = (
        4 * PARAMS.rotor_drag_coefficient * PARAMS.hover_speed * GUST
        + 3.0
        + 0.5 * 1.225 * 0.2 * GUST**2
    )
    steady = math.degrees(math.atan(drag / (PARAMS.mass * 9.80665)))
    assert steady == pytest.approx(2.6, abs=0.1)

    history = flown.history(flown.gust_time)
    history = history[history[:, 0] < flown.land_time]
    before = flown.history(flown.gust_time - 0.1)[0]
    assert np.abs(history[:, 4:6]).max() < 12.0
    assert np.abs(history[:, 6] - before[6]).max() < 6.0
    assert np.abs(history[:, 3] - before[3]).max() < 0.5
    assert np.linalg.norm(history[:, 1:3] - before[1:3], axis=1).max() < 2.0

    # the vehicle leans against the wind, which comes from the right of its heading
    windy = history[(history[:, 0] > flown.gust_time + 1.0) & (history[:, 0] < flown.calm_time)]
    assert windy[:, 4].mean() > 0.5 * steady * math.cos(0.5)


def test_its_own_attitude_is_that_of_the_simulation(flown):
    history = flown.history(flown.begin)
    difference = (history[:, 7:10] - history[:, 4:7] + 180.0) % 360.0 - 180.0
    assert np.ptp(history[:, 4]) > 4.0  # it did move
    assert np.ptp(history[:, 5]) > 2.0
    largest = np.abs(difference).max(axis=0)
    print(f"largest difference of roll, pitch, yaw: {largest.round(2)} deg")
    assert largest.max() < 2.0


def test_garbage_at_its_port_is_counted_and_ignored(flown):
    assert flown.session.ignored == 4


def test_a_second_session_says_which_port_is_taken(session):
    with pytest.raises(AutopilotError, match="UDP port 9002 is taken"):
        BetaflightSession(shipped_settings("scale_quad"))
    assert session.why_ended == ""


def test_without_its_motors_the_vehicle_falls(session):
    recorder = Recorder(session, noise=False)
    recorder.take_off()
    recorder.until(1.0, lambda: False)
    assert recorder.simulation.state.velocity[2] > -0.5
    height = recorder.simulation.state.position[2]
    recorder.loop.withhold = True
    recorder.until(0.4, lambda: False)
    # 0.04 s of the rotors' lag, then free fall
    fallen = 0.5 * 9.80665 * 0.4**2
    assert height - recorder.simulation.state.position[2] > 0.5 * fallen
    assert (
        recorder.loop.attitude_loop.motor_speeds.mean() > 0.3 * PARAMS.max_rotor_speed
    )  # it did its best


def test_killed_in_mid_air_it_is_gone_and_the_fail_safe_lands(session):
    recorder = Recorder(session, noise=True)
    recorder.take_off()
    os.kill(session.pid, signal.SIGKILL)
    with pytest.raises(AutopilotError, match="ended by SIGKILL"):
        recorder.until(2.0, lambda: False)

    assert not runs(session.pid)
    session.close()  # its ports are free again

    # the simulation's fail-safe lands
    simulation = recorder.simulation
    end = simulation.time + 6.0
    while simulation.time < end:
        simulation.tick()
    assert simulation.failsafe
    assert not simulation.crashed
    ground = simulation.model.terrain.altitude(*simulation.state.position[:2])
    assert simulation.state.position[2] == pytest.approx(ground + PARAMS.origin_height, abs=0.05)


def test_a_program_that_ends_at_once_is_said(tmp_path):
    with (
        claims.turn(claims.BETAFLIGHT_PORTS),
        pytest.raises(AutopilotError, match="has ended with code 1"),
    ):
        BetaflightSession(shipped_settings("scale_quad"), tmp_path, Path("/bin/false"))


@pytest.mark.exhaustive
@pytest.mark.ros
def test_the_nodes_take_off_in_lock_step_and_stand_still_without_the_firmware(
    firmware_ports, domain_id, tmp_path
):
    from diagnostic_msgs.msg import DiagnosticArray
    from nav_msgs.msg import Odometry
    from std_msgs.msg import String

    from rfly_common.ros.qos import COMMANDS, LATCHED, STATE_OUT, sensor_qos
    from rfly_common.ros.stamps import stamp_to_ns

    vehicle = {"vehicle": "scale_quad", "lock_step": "true"}
    seeing = {**vehicle, "sensors": slower_imu(tmp_path, "scale_quad")}
    nodes = {
        "amphibious_sim_node": {**seeing, "ground": "level"},
        "state_estimator_node": seeing,
        "betaflight_node": seeing,
        "chassis_control_node": vehicle,
    }
    with contextlib.ExitStack() as stack:
        started = {
            name: stack.enter_context(NodeProcess(name, domain_id, parameters))
            for name, parameters in nodes.items()
        }
        peer = Peer(domain_id)
        stack.callback(peer.close)
        truth = peer.receive(Odometry, "ground_truth/odom", sensor_qos(True))
        modes = peer.receive(String, "mode", LATCHED)
        diagnostics = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        word = peer.node.create_publisher(String, "cmd/mode", COMMANDS)
        firmware = started["betaflight_node"]

        def flight():
            return diagnostic(
                [m for m in diagnostics if "betaflight_node" in m.status[0].name], "flight"
            )

        # take-off: requested again until the estimator is aligned
        requested_at = 0.0
        begin = time.monotonic()
        while not modes or modes[-1].data != "FLIGHT":
            assert time.monotonic() - begin < PATIENCE, (modes[-1:], flight(), firmware.output)
            request = {"DISARMED": "arm", "DRIVE": "takeoff"}.get(modes[-1].data) if modes else None
            if request and time.monotonic() - requested_at > 0.5:
                word.publish(String(data=request))
                requested_at = time.monotonic()
            peer.spin_for(0.02)
        peer.spin_until(lambda: (report := flight()) and report[2].get("armed") == "True")
        assert flight()[2].keys() >= {"mode", "answers", "armed", "real_time_factor"}

        # hover
        height = truth[-1].pose.pose.position.z
        seen = stamp_to_ns(truth[-1].header.stamp)
        assert height > PARAMS.origin_height + 0.3
        peer.spin_until(lambda: stamp_to_ns(truth[-1].header.stamp) > seen + 500_000_000)
        assert abs(truth[-1].pose.pose.position.z - height) < 0.5

        # without the firmware the simulation stands still
        pid = int(re.search(r"runs as process (\d+)", firmware.output)[1])
        os.kill(pid, signal.SIGKILL)
        peer.spin_until(lambda: (report := flight()) and report[0] == 2 and "SIGKILL" in report[1])
        peer.spin_for(0.3)
        count = len(truth)
        peer.spin_for(0.7)
        assert len(truth) == count

        assert firmware.stop() == 0
        assert not runs(pid)
