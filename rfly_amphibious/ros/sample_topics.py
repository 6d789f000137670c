"""Sensor and state topics of a simulated vehicle, published each tick. Part of amphibious_sim_node."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from rfly_suite.msg import VehicleStateArray
from tf2_msgs.msg import TFMessage

from rfly_amphibious.estimation.odometry_frame import footprint
from rfly_amphibious.ros.amphibious_msgs import WORLD, SampleMessages, frame_of
from rfly_amphibious.ros.sensor_topics import SENSOR_TOPICS
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.sensors.sensor_parameters import SensorParameters
from rfly_amphibious.simulation.simulation import Simulation
from rfly_amphibious.vehicle.motor_channels import motor_channels
from rfly_common.arrays import Triple
from rfly_common.frames import euler_to_quat
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.frame_lookup import transform_to_msg
from rfly_common.ros.qos import FLEET_OUT, TF, TF_STATIC_OUT, sensor_qos
from rfly_common.ros.vehicle_msgs import states_to_msg
from rfly_common.vehicle_states import VehicleStates

SHOW_RATE = 50
"""Hz, of vehicle_states and of /tf"""


class SamplePublisher:
    """Publishes those samples that somebody listens to."""

    def __init__(self, node: Node, sensors: SensorParameters, vehicle: str, lock_step: bool, truth: bool) -> None:
        self._vehicle = vehicle
        self._messages: SampleMessages | None = None
        there = sensors.sensors()
        qos = sensor_qos(lock_step)
        self._publishers: dict[tuple[str, int], list[Publisher]] = {}
        """by kind of samples and index in SimulationTick"""
        for topic, (kind, sensor, index, msg_type) in SENSOR_TOPICS.items():
            if sensor in there and (truth or kind != "ground_truth"):
                made = publisher(node, msg_type, topic, qos)
                self._publishers.setdefault((kind, index), []).append(made)

    def begin(self, simulation: Simulation) -> None:
        """From now on samples are of this simulation."""
        self._messages = SampleMessages(simulation.sensors, self._vehicle)

    def publish(self, samples: SensorSamples) -> list[int]:
        """A tick's; how many messages of each kind there were, as in SimulationTick."""
        counts = [0] * 10
        for (kind, index), outs in self._publishers.items():
            given = getattr(samples, kind)
            if given is None or not any(out.get_subscription_count() for out in outs):
                continue
            made = getattr(self._messages, kind)(given)
            counts[index] = len(made)
            for message in made:
                if len(outs) == 1:
                    outs[0].publish(message)
                else:
                    for out, part in zip(outs, message, strict=True):
                        out.publish(part)
        return counts


class VehicleShow:
    """Where the vehicle is, for those who show it: vehicle_states, frames of its sensors, and /tf of the truth."""

    def __init__(self, node: Node, sensors: SensorParameters, vehicle: str, tf: bool, id: int, type: int) -> None:
        """`tf`: whether /tf, odom and base_link are told here; `id` and `type` as in vehicle_states."""
        self._node, self._vehicle = node, vehicle
        self._id, self._type = np.array([id]), np.array([type])
        self._states = publisher(node, VehicleStateArray, "vehicle_states", FLEET_OUT)
        self._tf = publisher(node, TFMessage, "/tf", TF) if tf else None
        self._static = publisher(node, TFMessage, "/tf_static", TF_STATIC_OUT)
        self._frames: list[TransformStamped] = []
        if tf:
            self.add_frame("odom", parent=WORLD)
        for name in ("imu", "gps", "barometer", "height"):
            sensor = getattr(sensors, name)
            if sensor is not None:
                frame = "baro_link" if name == "barometer" else f"{name}_link"
                self.add_frame(frame, sensor.position, getattr(sensor, "rotation", (0.0, 0.0, 0.0)))

    def add_frame(
        self,
        name: str,
        position: Triple = (0.0, 0.0, 0.0),
        rotation: Triple = (0.0, 0.0, 0.0),
        parent: str = "",
    ) -> None:
        """A frame of the vehicle that does not move on its parent, by default base_link: m; roll, pitch, yaw, rad."""
        parent = parent or frame_of(self._vehicle, "base_link")
        child = frame_of(self._vehicle, name)
        self._frames.append(transform_to_msg(parent, child, position, euler_to_quat(rotation), 0))
        self._static.publish(TFMessage(transforms=self._frames))

    def publish(self, simulation: Simulation, stamp_ns: int, source: str) -> None:
        """The present state; `stamp_ns` is that of vehicle_states, /tf has the simulation's time."""
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
        if self._tf is not None:
            odom, base = frame_of(self._vehicle, "odom"), frame_of(self._vehicle, "base_link")
            below = footprint(state.position, state.orientation, simulation.model.terrain)
            frames = ((base, (state.position, state.orientation)), (frame_of(self._vehicle, "base_footprint"), below))
            now = round(simulation.time * 1e9)
            moved = [transform_to_msg(odom, child, place, turned, now) for child, (place, turned) in frames]
            self._tf.publish(TFMessage(transforms=moved))
