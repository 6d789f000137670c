# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""state_estimator_node over DDS, with messages of real sensors, against the library's own
estimates.
"""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial
from types import SimpleNamespace
from unittest.mock import MagicMock, call

import numpy as np
import pytest

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.sensors.sensor_suite import SensorSuite
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_autonomy.estimation.estimator import StateEstimator
from rfly_autonomy.estimation.estimator_parameters import EstimatorParameters

pytestmark = pytest.mark.ros

SENSORS = SensorParameters.load("scale")
PARAMS = VehicleParameters.load("scale")
TICK_S = 0.004
WITHOUT_GPS = 1.1
"""Time after which it begins without a fix, s."""
TOPICS = {
    "imu": "imu/data",
    "gps": "gps/fix gps/vel",
    "magnetometer": "imu/mag",
    "barometer": "baro",
    "joints": "joint_states",
    "height": "height_above_ground",
    "wheel_loads": "wheel_loads",
}


def vector(point):
    return point.x, point.y, point.z


def as_transform(message):
    from rfly_common.transform_buffer import Transform

    q = message.rotation
    return Transform(np.array(vector(message.translation)), np.array((q.x, q.y, q.z, q.w)))


class Vehicle:
    """A vehicle whose sensors are published tick by tick, as the simulation does in lock-step."""

    def __init__(self, peer, lock_step):
        from diagnostic_msgs.msg import DiagnosticArray
        from geometry_msgs.msg import TwistStamped
        from nav_msgs.msg import Odometry
        from rfly_suite.msg import SimulationTick, WheelLoads
        from sensor_msgs.msg import (
            FluidPressure,
            Imu,
            JointState,
            MagneticField,
            NavSatFix,
            Range,
        )
        from tf2_msgs.msg import TFMessage

        from rfly_amphibious.ros.sensor_topics import sample_messages
        from rfly_common.ros.qos import STATE_OUT, TF, TF_STATIC_IN, sensor_qos

        self.peer = peer
        self.lock_step = lock_step
        self.odometry = peer.receive(Odometry, "odometry/global", STATE_OUT)
        self.local = peer.receive(Odometry, "odometry/filtered", STATE_OUT)
        self.said = peer.receive(DiagnosticArray, "/diagnostics", STATE_OUT)
        self.tf = peer.receive(TFMessage, "/tf", TF)
        self.tf_static = peer.receive(TFMessage, "/tf_static", TF_STATIC_IN)
        types = (
            Imu,
            NavSatFix,
            TwistStamped,
            MagneticField,
            FluidPressure,
            JointState,
            Range,
            WheelLoads,
        )
        topics = " ".join(TOPICS.values()).split()
        qos = sensor_qos(lock_step)
        # its kernels may have to be compiled first
        peer.spin_until(lambda: peer.node.count_subscribers("imu/data"))
        self._out = {
            topic: peer.publisher(of, topic, qos) for topic, of in zip(topics, types, strict=True)
        }
        self._tick = (
            peer.publisher(SimulationTick, "simulation_tick", STATE_OUT) if lock_step else None
        )
        self.begin()
        self._messages = sample_messages(self.suite, "amphibious")

    def begin(self):
        self.model = AmphibiousModel(PARAMS)
        self.state = self.model.standing()
        self.time_ns = 0
        self.suite = SensorSuite(self.model, SENSORS, seed=5)
        self.library = StateEstimator(
            EstimatorParameters.load("scale").replace(align_without_gps=WITHOUT_GPS),
            SENSORS,
            PARAMS,
            self.suite.geo_origin,
        )
        self.expected = None

    def go_on(self, controls, gps_off=0.0, gps=True, stuck_height=None):
        """Publish the samples of a tick, which go into the library too.

        The GPS may be silent, or off by degrees of latitude, and the height stuck at a value.
        """
        self.state, samples = self.suite.advance(
            self.state, controls, TICK_S, method="semi_implicit_euler"
        )
        if samples.gps is not None and gps_off:
            moved = samples.gps._replace(
                geodetic=samples.gps.geodetic + np.array((gps_off, 0.0, 0.0))
            )
            samples = dataclasses.replace(samples, gps=moved)
        if not gps:
            samples = dataclasses.replace(samples, gps=None)
        if samples.height is not None and stuck_height is not None:
            stuck = samples.height._replace(distance=np.array([stuck_height]))
            samples = dataclasses.replace(samples, height=stuck)
        self.expected = self.library.update(samples)
        self.time_ns = round(self.state.time * 1e9)
        counts = [0] * 10
        kinds = {
            "joints": 4,
            "wheel_loads": 7,
            "gps": 1,
            "magnetometer": 2,
            "barometer": 3,
            "height": 6,
            "imu": 0,
        }
        for kind, index in kinds.items():
            given = getattr(samples, kind)
            for topic in [] if given is None else TOPICS[kind].split():
                messages = self._messages(topic, given)
                counts[index] = len(messages)
                for message in messages:
                    self._out[topic].publish(message)
        if self.lock_step:
            self.tell_tick(counts)

    def tell_tick(self, counts=(0,) * 10):
        """And waits for the answer."""
        from rfly_suite.msg import SimulationTick

        from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns

        tick = SimulationTick(count=list(counts))
        tick.header.stamp = ns_to_stamp(self.time_ns)
        before = len(self.odometry)
        self._tick.publish(tick)
        self.peer.spin_until(lambda: len(self.local) == len(self.odometry) > before)
        assert stamp_to_ns(self.odometry[-1].header.stamp) == self.time_ns

    def diagnostic(self, ready):
        """(level, text, values) once they are as wanted."""
        from node_harness import diagnostic

        self.peer.spin_until(lambda: (now := diagnostic(self.said, "estimation")) and ready(now))
        return diagnostic(self.said, "estimation")


@pytest.fixture
def made(domain_id, request):
    from node_harness import NodeProcess, Peer

    peer = Peer(domain_id)
    lock_step = request.param
    with NodeProcess(
        "state_estimator_node",
        domain_id,
        {"lock_step": str(lock_step).lower(), "without_gps": WITHOUT_GPS},
    ) as node:
        yield Vehicle(peer, lock_step)
        assert node.stop() == 0
    peer.close()


@pytest.mark.parametrize("made", [True], indirect=True)
def test_in_lock_step_each_tick_is_answered_with_what_the_library_says(made):
    """Each tick is answered, even the first, when nothing is known yet.

    A repeated tick gets the same answer; a new start begins again, here without the GPS.
    """
    from rfly_autonomy.ros.estimate_msgs import is_unknown, odometry_to_estimate

    made.tell_tick()
    assert is_unknown(made.odometry[-1])
    compared = 0
    for k in range(500):
        drives = (
            Controls(drive_torque=(3.0,) * 4) if k > 330 else Controls(brake_torque=(15.0,) * 4)
        )
        made.go_on(drives)
        assert is_unknown(made.odometry[-1]) == (made.expected is None)
        if made.expected is None:
            continue
        got = odometry_to_estimate(made.odometry[-1])
        # what differs: stamps of whole nanoseconds, a range of 32 bits
        assert np.allclose(got.position, made.expected.position, atol=1e-5)
        assert np.allclose(got.velocity, made.expected.velocity, atol=1e-5)
        assert np.allclose(np.abs(got.orientation @ made.expected.orientation), 1.0, atol=1e-9)
        assert np.allclose(got.rates, made.expected.rates, atol=1e-6)
        assert np.allclose(
            got.covariance[:3, :3],
            made.expected.covariance[:3, :3],
            rtol=1e-3,
            atol=1e-9,
        )
        assert np.allclose(
            got.covariance[3:6, 3:6],
            made.expected.covariance[3:6, 3:6],
            rtol=1e-3,
            atol=1e-9,
        )
        compared += 1
    assert compared > 200
    assert np.linalg.norm(made.expected.velocity) > 0.5
    last = made.odometry[-1]
    made.tell_tick()
    assert made.odometry[-1] == last

    assert not made.tf_static, "corrections lie in map -> odom, so that it moves"
    told = made.tf[-1].transforms
    assert [(t.header.frame_id, t.child_frame_id) for t in told] == [
        ("map", "amphibious/odom"),
        ("amphibious/odom", "amphibious/base_link"),
        ("amphibious/odom", "amphibious/base_footprint"),
    ]
    assert len({(t.header.stamp.sec, t.header.stamp.nanosec) for t in told}) == 1
    steps = np.diff(
        [vector(message.transforms[1].transform.translation) for message in made.tf],
        axis=0,
    )
    assert np.linalg.norm(steps, axis=1).max() < 1.2 * 0.02 * np.linalg.norm(
        made.expected.velocity
    ), "no jumps in odom"
    odom, place, below = (as_transform(t.transform) for t in told)
    of_last = next(
        m for m in made.odometry if m.header.stamp == told[0].header.stamp
    ).pose.pose.position
    assert (odom @ place).translation == pytest.approx(vector(of_last), abs=1e-9)
    assert (odom @ below).translation == pytest.approx((of_last.x, of_last.y, 0.0), abs=1e-9)
    _, _, values = made.diagnostic(
        lambda now: now[2].get("initialised") == "True" and "innovation_magnetometer" in now[2]
    )
    assert int(values["rejected_gps_position"]) == 0
    assert 0.0 < float(values["innovation_magnetometer"]) < 10.0

    told = made.diagnostic(lambda now: now[2].get("gps_refused") == "False")
    begun = len(made.odometry)
    assert told[2]["gps_resets"] == "0"
    for _ in range(400):
        made.go_on(Controls(drive_torque=(1.0,) * 4), gps_off=30.0 / 111_319.0)
    text = made.diagnostic(lambda now: now[2].get("gps_refused") == "True")[1]
    assert text.startswith("GPS refused: it is ")
    off = [odometry_to_estimate(message).position for message in made.odometry[begun:]]
    assert np.ptp(np.diff(off, axis=0), axis=0).max() < 1.0, "never believed"
    assert {(m.header.frame_id, m.child_frame_id) for m in made.local} == {
        ("amphibious/odom", "amphibious/base_link")
    }
    assert {m.header.frame_id for m in made.odometry} == {"map"}
    known = [odometry_to_estimate(message) for message in made.local if not is_unknown(message)]
    for before, after in itertools.pairwise(known):
        step = np.linalg.norm(after.position - before.position)
        speed = max(np.linalg.norm(before.velocity), np.linalg.norm(after.velocity))
        assert step <= 1.01 * speed * (after.time - before.time) + 1e-9, "no larger than the motion"
    assert known[-1].position != pytest.approx(
        odometry_to_estimate(made.odometry[-1]).position, abs=1e-3
    )

    made.begin()
    for _ in range(300):
        made.go_on(Controls(brake_torque=(15.0,) * 4), gps=False)
        if made.expected is None:
            assert is_unknown(made.odometry[-1])
    assert not is_unknown(made.odometry[-1])


@pytest.mark.parametrize("made", [False], indirect=True)
def test_free_running_it_publishes_once_it_knows_and_says_when_the_imu_is_silent(made):
    from rfly_common.ros.diagnostics import OK, STALE

    stale = int.from_bytes(STALE, "big")
    ok = int.from_bytes(OK, "big")
    made.diagnostic(lambda now: now[0] == stale and "no imu/data yet" in now[1])
    for _ in range(400):
        made.go_on(Controls(brake_torque=(15.0,) * 4))
        made.peer.spin_for(0.002)
    made.peer.spin_until(lambda: made.odometry)
    made.diagnostic(lambda now: now[0] == ok)
    pose = made.odometry[-1].pose
    assert np.allclose(
        [pose.pose.position.x, pose.pose.position.y],
        made.expected.position[:2],
        atol=0.5,
    )
    assert pose.covariance[0] > 0.0
    stamps = np.array([m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in made.odometry])
    assert np.diff(stamps).min() > 0.0095  # 100 Hz, as the parameter says

    for _ in range(120):
        made.go_on(Controls(brake_torque=(15.0,) * 4), stuck_height=0.16)
        made.peer.spin_for(0.002)
    assert made.library.faults == {"height": "repeats its readings: left out"}
    *_, values = made.diagnostic(
        lambda now: "height repeats its readings" in now[2].get("faults", "")
    )
    assert values["faults"] == "height repeats its readings: left out"
    made.diagnostic(lambda now: now[0] == stale and "no imu/data for" in now[1])


def test_readings_before_the_first_imu_of_a_new_run_are_not_dropped():
    """They go to the estimator again once its IMU has shown that the time went back."""
    from rfly_autonomy.ros.state_estimator_node import StateEstimatorNode

    node = MagicMock(_imu_time=5.0, _waiting=[], _published_ns=0, _period_ns=10**9)
    node._estimator.coasting = False
    node._is_of_new_run = partial(StateEstimatorNode._is_of_new_run, node)
    node._reset = partial(StateEstimatorNode._reset, node)
    for kind, stamp in (("gps", 4.99), ("imu", 5.004), ("gps", 0.0), ("baro", 0.0), ("imu", 0.004)):
        StateEstimatorNode._use(node, kind, SimpleNamespace(time=np.array([stamp])))
    after = node.method_calls[node.method_calls.index(call._estimator.reset()) :]
    fed = [each.args[0] for each in after if each[0] == "_feed"]
    assert fed == ["gps", "baro", "imu"]

    # in lock-step the tick tells it, and what waits for it may be of both runs
    old, new = (("gps", SimpleNamespace(time=np.array([stamp]))) for stamp in (5.196, 0.2))
    node._imu_time = 5.2
    node._waiting = [old, new]
    node._reset()
    assert node._waiting == [new]
