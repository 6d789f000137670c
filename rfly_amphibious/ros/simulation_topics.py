"""All that a simulation publishes: samples, states, ranges, clock, ticks, fail-safe. Part of amphibious_sim_node."""

from __future__ import annotations

import math
import time

from rclpy.node import Node
from rfly_suite.msg import SimulationTick
from rosgraph_msgs.msg import Clock
from std_msgs.msg import Bool

from rfly_amphibious.ros.node_parameters import SimulationParameters
from rfly_amphibious.ros.range_sensor_topics import RangeSensorTopics
from rfly_amphibious.ros.sample_topics import SHOW_RATE, SamplePublisher, VehicleShow
from rfly_amphibious.ros.simulation_setup import SimulationSetup
from rfly_amphibious.sensors.neighbours import Neighbours
from rfly_amphibious.sensors.samples import SensorSamples
from rfly_amphibious.simulation.simulation import Simulation
from rfly_common.ros.endpoints import publisher
from rfly_common.ros.qos import CLOCK, LATCHED, STATE_OUT
from rfly_common.ros.stamps import ns_to_stamp
from rfly_terrain.world.weather import CLEAR

CLOCK_RATE = 100
"""Hz of simulation time"""
CLOCK_SLACK_S = 0.1
"""by which the simulation may fall behind the node's clock before what moves jumps to where that clock has it"""
KINDS = 10
"""kinds of samples that SimulationTick counts"""


class SimulationTopics:
    """Publishers of one simulated vehicle."""

    def __init__(self, node: Node, vehicle: str, setup: SimulationSetup, given: SimulationParameters) -> None:
        self._node, self._publishes_clock = node, given.publish_clock
        self._given = given
        self._source = node.get_fully_qualified_name()
        self._counts = [0] * KINDS
        self.shown_at = -math.inf
        """wall time of the last vehicle_states"""
        self.tick_at = -math.inf
        """wall time of the last simulation_tick"""
        self._samples = SamplePublisher(node, setup.sensors, vehicle, given.lock_step, given.publish_truth)
        self._show = VehicleShow(node, setup.sensors, vehicle, given.tf_source == "truth", given.id, given.type)
        self._range_sensors = RangeSensorTopics(
            node,
            setup.sensors,
            vehicle=vehicle,
            own_id=given.id,
            weather=CLEAR if setup.scenario is None else setup.scenario.weather,
            seed=setup.wind.seed,
            noise=given.noise,
            lock_step=given.lock_step,
        )
        self._failsafe = publisher(node, Bool, "failsafe", LATCHED)
        self._ticks = publisher(node, SimulationTick, "simulation_tick", STATE_OUT) if given.lock_step else None
        self._clock = publisher(node, Clock, "/clock", CLOCK) if given.publish_clock else None

    @property
    def neighbours(self) -> Neighbours:
        """The other vehicles."""
        return self._range_sensors.neighbours

    def close(self) -> None:
        """Ends the thread of lidar and cameras."""
        self._range_sensors.close()

    def begin(self, simulation: Simulation) -> None:
        """From now on all is of this simulation."""
        self._samples.begin(simulation)
        self._range_sensors.begin(simulation, self._given)

    def restart(self, simulation: Simulation) -> None:
        """The simulation is at its start, or was reset; `publish_start` follows."""
        self._counts = [0] * KINDS
        self._range_sensors.restart(simulation)
        self.publish_failsafe(simulation.failsafe)

    def publish_start(self, simulation: Simulation) -> None:
        """State, time and tick of a simulation before its first tick."""
        self.publish_vehicle(simulation)
        self._publish_clock(simulation)
        self.publish_tick(simulation)

    def moved(self, simulation: Simulation) -> None:
        """The vehicle was put elsewhere."""
        self._range_sensors.restart(simulation)
        self.publish_vehicle(simulation)

    def publish_samples(self, simulation: Simulation, samples: SensorSamples) -> None:
        """All that belongs to a tick; what nobody waits for in lock-step comes last."""
        ticks, period = simulation.ticks, simulation.period
        self._counts = self._samples.publish(samples)
        self.publish_tick(simulation)
        if _due(ticks, period, CLOCK_RATE):
            self._publish_clock(simulation)
        self._range_sensors.follow(simulation)
        if _due(ticks, period, SHOW_RATE) or self.neighbours.solid:  # who is run into is to know at once
            self.publish_vehicle(simulation)

    def publish_failsafe(self, acts: bool) -> None:
        """Whether the fail-safe acts."""
        self._failsafe.publish(Bool(data=acts))

    def publish_vehicle(self, simulation: Simulation) -> None:
        """The vehicle's state, for those who show it."""
        self.shown_at = time.monotonic()
        stamp_ns = simulation.time_ns if self._publishes_clock else self._node.get_clock().now().nanoseconds
        ahead = (stamp_ns - simulation.time_ns) * 1e-9
        if abs(ahead - simulation.model.clock_ahead) > CLOCK_SLACK_S:
            simulation.model.clock_ahead = ahead
        self._show.publish(simulation, stamp_ns, self._source)

    def publish_tick(self, simulation: Simulation) -> None:
        """In lock-step what the simulation waits for answers to."""
        if self._ticks is not None:
            message = SimulationTick(count=self._counts)
            message.header.stamp = ns_to_stamp(simulation.time_ns)
            self._ticks.publish(message)
            self.tick_at = time.monotonic()

    def _publish_clock(self, simulation: Simulation) -> None:
        if self._clock is not None:
            self._clock.publish(Clock(clock=ns_to_stamp(simulation.time_ns)))


def _due(ticks: int, period: float, rate: float) -> bool:
    """Whether a multiple of 1/rate lies within this tick."""
    return math.floor(ticks * period * rate + 1e-6) > math.floor((ticks - 1) * period * rate + 1e-6)
