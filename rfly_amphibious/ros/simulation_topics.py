# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Publishers of a simulation: samples, states, ranges, clock, ticks, fail-safe.

They are part of amphibious_sim_node.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.publisher import Publisher
from rfly_suite.msg import SimulationTick, VehicleForces, VehicleStateArray
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import BatteryState
from std_msgs.msg import Bool
from tf2_msgs.msg import TFMessage

from rfly_amphibious.description.footprint import footprint
from rfly_amphibious.description.urdf import CAMERA_JOINT
from rfly_amphibious.ros.node_parameters import SimulationParameters
from rfly_amphibious.ros.range_sensor_topics import RangeSensorTopics
from rfly_amphibious.ros.sensor_topics import SENSOR_TOPICS, sample_messages
from rfly_amphibious.ros.simulation_setup import SimulationSetup
from rfly_amphibious.sensors.sample_messages import SampleMessages, frame_of, set_forces, stamped
from rfly_amphibious.sensors.samples import OdometrySamples, SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle.motor_channels import motor_channels
from rfly_common.frames import euler_to_quat
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.frame_lookup import transform_to_msg
from rfly_common.ros.qos import (
    CLOCK,
    FLEET_OUT,
    LATCHED,
    STATE_OUT,
    TF,
    TF_STATIC_OUT,
)
from rfly_common.ros.stamps import ns_to_stamp
from rfly_common.ros.vehicle_msgs import battery_to_msg, states_to_msg
from rfly_common.transform_buffer import WORLD, Transform
from rfly_common.vehicle_states import VehicleStates
from rfly_terrain.world.weather import CLEAR

SHOW_RATE = 50
"""Rate of vehicle_states and of /tf, Hz."""
CLOCK_RATE = 100
"""Rate of /clock in simulation time, Hz."""
EPOCH_STEP_NS = 20_000_000
"""Steps in which the epoch is placed on the node's clock, ns: a period of the common sensors, so
that these measure at the same times of the clock."""
BACK_NS = 80_000_000
"""Step back of the stamps after a reset, ns, by which estimator and controllers know of it."""
CLOCK_SLACK_S = 0.1
"""Largest lag behind the node's clock before moving objects jump to that clock's time, s."""
FORCES_RATE = 100
"""Rate of ground_truth/forces, Hz."""
BATTERY_RATE = 2
"""Rate of battery, Hz."""
GimbalState = Callable[[float], tuple[float, float]]
"""Function of a time, s, that returns pitch, rad, and rate, rad/s, of the cameras' gimbal."""
KINDS = 10
"""Kinds of samples that SimulationTick counts."""


class SimulationTopics:
    """Publishers of one simulated vehicle."""

    def __init__(
        self,
        node: Node,
        vehicle: str,
        setup: SimulationSetup,
        settings: SimulationParameters,
    ) -> None:
        self._node = node
        self._publishes_clock = settings.publish_clock
        self._settings = settings
        self._source = node.get_fully_qualified_name()
        self._counts = [0] * KINDS
        self._counts_from_0 = settings.publish_clock or (
            settings.has_own_pace and not node.get_parameter("use_sim_time").value
        )
        self.epoch_ns = 0
        """Stamp of simulation time 0, ns."""
        self._stamped_ns = -1
        """Newest stamp, ns."""
        self.shown_at = -math.inf
        """Wall time of the last vehicle_states, s."""
        self.tick_at = -math.inf
        """Wall time of the last simulation_tick, s."""

        self._show = VehicleShow(
            node,
            setup.sensors,
            vehicle,
            settings.tf_source == "truth",
            settings.id,
            settings.type,
        )

        self.range_sensors = RangeSensorTopics(
            node,
            setup.sensors,
            vehicle=vehicle,
            own_id=settings.id,
            weather=CLEAR if setup.scenario is None else setup.scenario.weather,
            seed=setup.wind.seed,
            noise=settings.noise,
            lock_step=settings.lock_step,
        )
        self._samples = SamplePublisher(
            node,
            setup.sensors,
            vehicle,
            settings.publish_truth,
            None if settings.gimbal_state == "tf" else self.range_sensors.gimbal_at,
        )

        self._base_frame = frame_of(vehicle, "base_link")
        self._forces = (
            publisher(node, VehicleForces, "ground_truth/forces", STATE_OUT)
            if settings.publish_truth
            else None
        )
        self._failsafe = publisher(node, Bool, "failsafe", LATCHED)
        self._battery = publisher(node, BatteryState, "battery", STATE_OUT)
        self._ticks = (
            publisher(node, SimulationTick, "simulation_tick", STATE_OUT)
            if settings.lock_step
            else None
        )
        self._clock = publisher(node, Clock, "/clock", CLOCK) if settings.publish_clock else None

    def begin(self, simulation: Simulation) -> None:
        """Publish this simulation from now on."""
        self.range_sensors.begin(simulation, self._settings)

    def restart(self, simulation: Simulation) -> None:
        """Publish that the simulation is at its start, or was reset; `publish_start` follows."""
        self._counts = [0] * KINDS
        self._place_epoch(simulation)
        self._samples.begin(simulation, self.epoch_ns)
        self.range_sensors.restart(simulation, self.epoch_ns)
        self.publish_failsafe(simulation.failsafe)

    def _place_epoch(self, simulation: Simulation) -> None:
        """Put simulation time on the node's clock, unless stamps count from 0.

        Estimator and controllers begin anew when stamps step back. After a reset of the time they
        do, by a little only: buffers of transforms ignore what is much older than the newest.
        """
        if self._counts_from_0 or self.epoch_ns + simulation.time_ns >= self._stamped_ns >= 0:
            return
        now_ns = self._node.get_clock().now().nanoseconds
        if self._stamped_ns >= 0:
            now_ns = min(now_ns, self._stamped_ns - BACK_NS)
        self.epoch_ns = now_ns // EPOCH_STEP_NS * EPOCH_STEP_NS - simulation.time_ns

    def stamp_ns(self, simulation: Simulation) -> int:
        """Return the stamp of the simulation's present time, ns."""
        return self.epoch_ns + simulation.time_ns

    def lag(self, simulation: Simulation) -> float:
        """Return by how much stamps are behind the node's clock, s; 0 if they count from 0."""
        if self._counts_from_0:
            return 0.0
        now_ns = self._node.get_clock().now().nanoseconds
        return (now_ns - self.stamp_ns(simulation)) * 1e-9

    def publish_start(self, simulation: Simulation) -> None:
        """Publish state, time and tick of a simulation before its first tick."""
        self.publish_vehicle(simulation)
        self._publish_clock(simulation)
        self.publish_tick(simulation)

    def moved(self, simulation: Simulation) -> None:
        """Publish that the vehicle was put elsewhere."""
        self.range_sensors.restart(simulation, self.epoch_ns)
        self.publish_vehicle(simulation)

    def publish_samples(self, simulation: Simulation, samples: SensorSamples) -> None:
        """Publish what belongs to a tick; in lock-step, what no node waits for comes last."""
        ticks = simulation.ticks
        period = simulation.period
        self._stamped_ns = self.stamp_ns(simulation)
        self._counts = self._samples.publish(samples)
        if _due(ticks, period, BATTERY_RATE):  # before the tick: guidance_node acts on it
            self._publish_battery(simulation)
        self.publish_tick(simulation)

        if _due(ticks, period, FORCES_RATE):
            self._publish_forces(simulation)
        if samples.wheel_odometry is not None:
            self._show.publish_wheel_odometry(samples.wheel_odometry, self.epoch_ns)
        if _due(ticks, period, CLOCK_RATE):
            self._publish_clock(simulation)
        self.range_sensors.follow(simulation)
        # a vehicle that can be run into must be known at once
        if _due(ticks, period, SHOW_RATE) or self.range_sensors.neighbours.solid:
            self.publish_vehicle(simulation)

    def publish_failsafe(self, acts: bool) -> None:
        """Publish whether the fail-safe acts."""
        self._failsafe.publish(Bool(data=acts))

    def publish_vehicle(self, simulation: Simulation) -> None:
        """Publish the vehicle's state, for displays."""
        self.shown_at = time.monotonic()
        stamp_ns = (
            simulation.time_ns
            if self._publishes_clock
            else self._node.get_clock().now().nanoseconds
        )

        ahead = (stamp_ns - simulation.time_ns) * 1e-9
        if abs(ahead - simulation.model.clock_ahead) > CLOCK_SLACK_S:
            simulation.model.clock_ahead = ahead
        self._show.publish(simulation, stamp_ns, self._source, self.stamp_ns(simulation))

    def publish_tick(self, simulation: Simulation) -> None:
        """Publish the tick, which in lock-step asks for answers."""
        if self._ticks is not None:
            message = SimulationTick(count=self._counts)
            message.header.stamp = ns_to_stamp(self.stamp_ns(simulation))
            self._ticks.publish(message)
            self.tick_at = time.monotonic()

    def _publish_forces(self, simulation: Simulation) -> None:
        """Publish the forces of the last step, if a node wants to know them."""
        if self._forces is not None and self._forces.get_subscription_count():
            message = stamped(VehicleForces(), simulation.time, self._base_frame, self.epoch_ns)
            self._forces.publish(set_forces(message, simulation.outputs))

    def _publish_battery(self, simulation: Simulation) -> None:
        """Publish the battery's state, if the vehicle has one."""
        battery = simulation.power.battery
        if battery is not None:
            message = battery_to_msg(battery)
            message.percentage = simulation.power.charge_shown
            message.charge = message.capacity * message.percentage
            message.header.stamp = ns_to_stamp(self.stamp_ns(simulation))
            self._battery.publish(message)

    def _publish_clock(self, simulation: Simulation) -> None:
        if self._clock is not None:
            self._clock.publish(Clock(clock=ns_to_stamp(simulation.time_ns)))


class SamplePublisher:
    """Publisher of those samples that have a subscriber.

    `gimbal_at`: state of the cameras' gimbal for joint_states, None where they do not have it.
    """

    def __init__(
        self,
        node: Node,
        sensors: SensorParameters,
        vehicle: str,
        truth: bool,
        gimbal_at: GimbalState | None,
    ) -> None:
        self._vehicle = vehicle
        self._gimbal_at = gimbal_at
        self._messages: SampleMessages | None = None
        fitted = sensors.sensors()
        self._publishers: dict[tuple[str, int], dict[str, Publisher]] = {}
        """Publishers by topic, for each kind of samples and index in SimulationTick."""
        for topic, (kind, sensor, index, msg_type) in SENSOR_TOPICS.items():
            if sensor in fitted and (truth or kind != "ground_truth"):
                output = publisher(node, msg_type, topic, STATE_OUT)
                self._publishers.setdefault((kind, index), {})[topic] = output

    def begin(self, simulation: Simulation, epoch_ns: int) -> None:
        """Publish samples of this simulation from now on; `epoch_ns`: stamp of its time 0."""
        self._messages = sample_messages(simulation.sensors, self._vehicle, epoch_ns)

    def publish(self, samples: SensorSamples) -> list[int]:
        """Publish a tick's samples and return the number of messages by kind.

        The kinds are those of SimulationTick.
        """
        messages_of = self._messages
        assert messages_of is not None
        counts = [0] * KINDS
        for (kind, index), outs in self._publishers.items():
            readings = getattr(samples, kind)
            heard = any(out.get_subscription_count() for out in outs.values())
            if readings is None or not heard:
                continue

            counts[index] = len(readings.time)
            messages = [messages_of(topic, readings) for topic in outs]
            if kind == "joints" and self._gimbal_at is not None:
                self._add_gimbal(messages[0], readings.time.tolist(), self._gimbal_at)
            for sample in zip(*messages, strict=True):
                for out, message in zip(outs.values(), sample, strict=True):
                    out.publish(message)
        return counts

    @staticmethod
    def _add_gimbal(messages: list[Any], times: list[float], gimbal_at: GimbalState) -> None:
        """Add the joint of the cameras' gimbal to joint_states of some times, s."""
        for message, instant in zip(messages, times, strict=True):
            pitch, rate = gimbal_at(instant)
            message.name = [*message.name, CAMERA_JOINT]
            message.position.append(pitch)
            message.velocity.append(rate)


class VehicleShow:
    """Publisher of the vehicle's place for displays: vehicle_states, sensor frames, and /tf."""

    def __init__(
        self,
        node: Node,
        sensors: SensorParameters,
        vehicle: str,
        tf: bool,
        id: int,
        type: int,
    ) -> None:
        """Publish the fixed frames.

        `tf`: odom and base_link are published here, from the truth. `id` and `type` are those
        of vehicle_states.
        """
        self._node = node
        self._vehicle = vehicle
        self._id = np.array([id])
        self._type = np.array([type])

        self._states = publisher(node, VehicleStateArray, "vehicle_states", FLEET_OUT)
        self._shows_truth = tf
        self._tf = publisher(node, TFMessage, "/tf", TF)
        self._static = publisher(node, TFMessage, "/tf_static", TF_STATIC_OUT)

        # fixed frames
        base = frame_of(vehicle, "base_link")
        zero = (0.0, 0.0, 0.0)
        frames = (
            [transform_to_msg(WORLD, frame_of(vehicle, "odom"), zero, euler_to_quat(zero), 0)]
            if tf
            else []
        )

        for name, (place, turn) in sensors.fixed_frames().items():
            quat = euler_to_quat(turn)
            frames.append(transform_to_msg(base, frame_of(vehicle, name), place, quat, 0))
        self._static.publish(TFMessage(transforms=frames))

    def publish(self, simulation: Simulation, stamp_ns: int, source: str, time_ns: int) -> None:
        """Publish the present state; vehicle_states has `stamp_ns`, /tf the simulation's stamp."""
        state = simulation.state
        params = simulation.model.params
        motors = motor_channels(state.x, params.rotors, len(params.wheels)).astype(np.float32)

        states = VehicleStates(
            id=self._id,
            vehicle_type=self._type,
            position=state.position[None],
            orientation=state.orientation[None],
            velocity=state.velocity[None].astype(np.float32),
            angular_velocity=state.rates[None].astype(np.float32),
            motor_speed=motors[None],
            source=source,
            stamp_ns=stamp_ns,
        )
        self._states.publish(states_to_msg(states))

        if self._shows_truth:
            odom = frame_of(self._vehicle, "odom")
            base = frame_of(self._vehicle, "base_link")
            below = footprint(state.position, state.orientation, simulation.model.terrain)
            frames = (
                (base, (state.position, state.orientation)),
                (frame_of(self._vehicle, "base_footprint"), below),
            )
            transforms = [
                transform_to_msg(odom, child, place, rotation, time_ns)
                for child, (place, rotation) in frames
            ]
            self._tf.publish(TFMessage(transforms=transforms))

    def publish_wheel_odometry(self, readings: OdometrySamples, epoch_ns: int) -> None:
        """Publish where the frame of wheel/odom lies.

        It is a child of base_link, which has a parent already: the transform is the inverse pose.
        """
        pose = Transform(readings.position[-1], readings.orientation[-1]).inverse()
        base = frame_of(self._vehicle, "base_link")
        odom = frame_of(self._vehicle, "wheel_odom")
        stamp_ns = epoch_ns + round(float(readings.time[-1]) * 1e9)
        frame = transform_to_msg(base, odom, pose.translation, pose.quat_xyzw, stamp_ns)
        self._tf.publish(TFMessage(transforms=[frame]))


def _due(ticks: int, period: float, rate: float) -> bool:
    """Return whether a multiple of 1/rate lies within this tick."""
    return math.floor(ticks * period * rate + 1e-6) > math.floor((ticks - 1) * period * rate + 1e-6)
