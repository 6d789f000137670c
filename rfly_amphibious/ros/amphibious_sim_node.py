"""amphibious_sim_node: simulation of the land-air vehicle and its sensors, in real time or lock-step."""

from __future__ import annotations

import math
import time
from typing import Any

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rfly_suite.msg import RotorCommand, SimulationTick, WheelCommand
from rosgraph_msgs.msg import Clock as ClockMessage
from std_msgs.msg import Bool, String

from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_amphibious.dynamics.wind import Wind
from rfly_amphibious.ros import amphibious_msgs as convert
from rfly_amphibious.ros.range_sensor_topics import RangeSensorTopics
from rfly_amphibious.ros.sample_topics import SHOW_RATE, SamplePublisher, VehicleShow
from rfly_amphibious.ros.simulation_services import LOADING, PAUSED, PLAYING, STATES, STOPPED, SimulationServices
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.sensors.sensor_parameters import SensorParameters, shipped_sensor_sets
from rfly_amphibious.simulation.pacing import Pacer
from rfly_amphibious.simulation.simulation import COMMAND_TIMEOUT, Simulation
from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_amphibious.warm_up import warm_up
from rfly_common.errors import CommandError, ConfigError, DynamicsError
from rfly_common.ros.diagnostics import ERROR, OK, STALE, WARN, Diagnostics
from rfly_common.ros.endpoints import publisher, subscription
from rfly_common.ros.parameters import declare, declare_floats
from rfly_common.ros.qos import CLOCK, COMMANDS, LATCHED, STATE_OUT
from rfly_common.ros.run_loop import run
from rfly_common.ros.stamps import ns_to_stamp, stamp_to_ns
from rfly_terrain.height_map.height_map import HeightMap
from rfly_terrain.ros.terrain_topics import NOT_YET, LatestTerrain

CLOCK_RATE = 100
"""Hz of simulation time"""
TOLD_AGAIN_S = 0.5
"""wall time after which an unanswered tick is told again"""
BATCH_S = 0.005
"""wall time of ticks in a row, before messages and services have their turn"""
STILL_SHOWN_S = 0.2
"""wall time between two vehicle_states of a simulation that stands still"""
WAITED_S = 1.0
REFUSED_SHOWN_S = 5.0
SLOW = 0.9
"""of the real-time factor: less is told"""


class AmphibiousSimNode(Node):
    """Simulates one vehicle as soon as it has a ground to stand on."""

    def __init__(self) -> None:
        super().__init__("amphibious_sim_node")
        self._vehicle: str = declare(
            self, "vehicle_name", self.get_namespace().strip("/") or "amphibious", "prefix of the vehicle's frames"
        )
        self._declare_what()
        self._declare_how()
        self.run_state = LOADING
        self._simulation: Simulation | None = None
        self._map_problem = ""
        self._broken = ""
        self._steps_asked = 0
        self._counts = [0] * 10
        self._is_queued = False
        self._rotors_answered = self._wheels_answered = False
        self._fresh_at = -math.inf
        self._told_at = self._shown_at = self._waited_since = self._refused_at = -math.inf
        self._refused = ""
        self._factor_from: tuple[float, float] | None = None
        self._factor = math.nan
        self._source = self.get_fully_qualified_name()
        self._diagnostics = Diagnostics(self, "simulation", "level ground", self._say)
        self._samples = SamplePublisher(self, self._sensors, self._vehicle, self._lock_step, self._publish_truth)
        self._show = VehicleShow(self, self._sensors, self._vehicle, self._tf_of_truth, *self._shown_as)
        self._range_sensors = RangeSensorTopics(
            self,
            self._sensors,
            vehicle=self._vehicle,
            own_id=self._shown_as[0],
            seed=self._wind.seed,
            noise=self._noise,
            lock_step=self._lock_step,
        )
        self._failsafe = publisher(self, Bool, "failsafe", LATCHED)
        self._tick_end = publisher(self, SimulationTick, "simulation_tick", STATE_OUT) if self._lock_step else None
        self._clock_out = publisher(self, ClockMessage, "/clock", CLOCK) if self._publish_clock else None
        subscription(self, RotorCommand, "cmd/rotors", self._take_rotors, COMMANDS)
        subscription(self, WheelCommand, "cmd/wheels", self._take_wheels, COMMANDS)
        subscription(self, String, "cmd/mode", self._take_mode, COMMANDS)
        self._asked = SimulationServices(self, self, self._vehicle)
        warm_up()  # before the clock runs
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        period = 1.0 / (self._sensors.imu.rate if self._sensors.imu is not None else 250.0)
        self._pacer = Pacer(self._wanted_factor, period)
        wake = period / self._wanted_factor if self._wanted_factor else period
        self._timer = self.create_timer(max(wake, 0.001), self._work, clock=steady)
        self._slow_timer = self.create_timer(0.1, self._now_and_then, clock=steady)
        self._say_what()
        if self._ground is not None:
            self._ground.start()
        else:
            terrain = None if self._scenario is None else self._scenario.terrain
            self._load(terrain, None if terrain is None else terrain.geo_origin)

    def _declare_what(self) -> None:
        name = declare(self, "scenario", "", "map, vehicle, start, wind, events and seed: a shipped name, or a file")
        vehicle = declare(self, "vehicle", "", "parameters: full, scale, scale_quad or a YAML file (default: scale)")
        sensors = declare(self, "sensors", "", "sensor set: a shipped name or a YAML file (default: the vehicle's)")
        ground = declare(
            self,
            "ground",
            "auto",
            "terrain_map (the topic), level (z = 0), or auto: the scenario's, without a scenario the topic's",
            choices=("auto", "terrain_map", "level"),
        )
        path = declare(self, "map_folders", [], "folders searched first for the map that a scenario names")
        self._scenario = Scenario.load(name, path) if name else None
        scenario = self._scenario
        self._params = scenario.params if scenario is not None and not vehicle else None
        if self._params is None:
            self._params = VehicleParameters.load(vehicle or "scale")
        if not sensors:
            sensors = self._params.name if self._params.name in shipped_sensor_sets() else "scale"
        self._sensors = SensorParameters.load(sensors)
        wants_topic = ground == "terrain_map" or (ground == "auto" and scenario is None)
        self._ground = LatestTerrain(self, self._load, self._refuse_terrain) if wants_topic else None
        if scenario is not None and ground == "level":
            raise ConfigError("parameter ground: level, but scenario says where it is; expected auto or terrain_map")
        start = declare_floats(self, "start", "x east, y north (m), heading (rad from east); default: the scenario's")
        if start and (len(start) != 3 or not all(map(math.isfinite, start))):
            raise ConfigError(f"parameter start: {start}, expected x, y, heading")
        of_scenario = (0.0, 0.0, 0.0) if scenario is None else (*scenario.start, scenario.heading)
        self._start = (start[0], start[1], start[2]) if start else of_scenario
        mean = declare_floats(self, "wind", "mean, m/s towards east, north, up; default: the scenario's, or none")
        sigma = declare_floats(self, "gust_sigma", "standard deviation of gusts by axis, m/s; default as of wind")
        seed = declare(self, "seed", -1, "of noise and gusts; -1: the scenario's, or 0", low=-1, high=2**31 - 1)
        for key, given in (("wind", mean), ("gust_sigma", sigma)):
            if given and len(given) != 3:
                raise ConfigError(f"parameter {key}: {given}, expected three numbers")
        base = Wind() if scenario is None else scenario.wind
        try:
            self._wind = Wind(
                (mean[0], mean[1], mean[2]) if mean else base.mean,
                (sigma[0], sigma[1], sigma[2]) if sigma else base.gust_sigma,
                base.gust_time,
                base.seed if seed < 0 else seed,
            )
        except ConfigError as error:
            raise ConfigError(f"parameters wind, gust_sigma: {error}") from None

    def _declare_how(self) -> None:
        self._noise: bool = declare(self, "noise", True, "false: sensors read the truth")
        self._method = declare(
            self,
            "method",
            "rk4" if self._scenario is None else self._scenario.method,
            "of integration",
            choices=("rk4", "semi_implicit_euler"),
        )
        self._timeout: float = declare(
            self,
            "command_timeout",
            COMMAND_TIMEOUT,
            "s of simulation time: an older actuator command brings the fail-safe",
            low=0.01,
            high=10.0,
        )
        self._patience: float = declare(
            self,
            "command_patience",
            0.0,
            "s for which simulation time stands still before a command grows too old: on a busy machine it goes slower",
            low=0.0,
            high=60.0,
        )
        self._lock_step: bool = declare(
            self, "lock_step", False, "each tick waits for a RotorCommand and a WheelCommand with its stamp"
        )
        self._wanted_factor: float = declare(
            self, "real_time_factor", 1.0, "simulated seconds in a second; 0: as fast as possible", low=0.0, high=1000.0
        )
        self._publish_clock: bool = declare(self, "publish_clock", False, "publish /clock")
        self._publish_truth: bool = declare(self, "publish_truth", True, "publish ground_truth/odom")
        source = declare(
            self,
            "tf_source",
            "estimate",
            "who tells /tf where the vehicle is: state_estimator_node (estimate), or this node (truth)",
            choices=("estimate", "truth"),
        )
        self._tf_of_truth = source == "truth"
        self._starts_paused: bool = declare(self, "paused", False, "begin paused: set_simulation_state plays")
        self._shown_as = (
            declare(self, "id", 601, "RflySim copterID", low=1, high=2**31 - 1),
            declare(self, "type", 3, "RflySim vehicleType: which model is shown", low=0, high=2**31 - 1),
        )

    def _say_what(self) -> None:
        pace = f"{self._wanted_factor:g} × real time" if self._wanted_factor else "as fast as possible"
        lock = ", in lock-step" if self._lock_step else ""
        waits = "" if self._ground is None else "; waiting for terrain_map"
        assert self._params is not None
        self.get_logger().info(f"{self._vehicle}: vehicle {self._params.name!r}, {pace}{lock}{waits}")

    # the ground, and what stands on it

    def _refuse_terrain(self) -> None:
        self._diagnostics.count("refused_terrains")
        self._say()

    def _load(self, terrain: HeightMap | None, geo_origin: tuple[float, float, float] | None) -> None:
        """A simulation on this ground, from its start."""
        assert self._params is not None
        x, y, _ = self._start
        if terrain is not None and not terrain.inside(x, y):
            self._no_ground(f"start x {x:g}, y {y:g} lies off the map {terrain.name!r}, which spans {terrain.bounds}")
            return
        scenario = self._scenario
        try:
            simulation = Simulation(
                AmphibiousModel(self._params, terrain),
                self._sensors,
                self._start,
                wind=self._wind,
                seed=self._wind.seed,
                noise=self._noise,
                method=self._method,
                geo_origin=geo_origin,
                command_timeout=self._timeout,
                events=() if scenario is None else scenario.events,
            )
        except ConfigError as error:
            if self._ground is None:
                raise
            self._no_ground(str(error))
            return
        self._simulation, self._map_problem = simulation, ""
        self._diagnostics.hardware_id = "level ground" if terrain is None else terrain.name
        self._samples.begin(self._simulation)
        self._range_sensors.set_terrain(terrain)
        self._broken = ""
        self.run_state = PAUSED if self._starts_paused else PLAYING
        self._from_here()
        self.get_logger().info(f"stands on {self._diagnostics.hardware_id!r} at x {x:g}, y {y:g}")

    def _no_ground(self, why: str) -> None:
        """It waits for another map."""
        self._map_problem = why
        self.get_logger().error(why)
        self._simulation, self.run_state, self._steps_asked = None, LOADING, 0
        if self._asked.stepping:
            self._asked.stepped(why)
        self._say()

    def _from_here(self) -> None:
        """The simulation begins here: at its start, or after a jump."""
        simulation = self._simulation
        assert simulation is not None
        self._counts = [0] * 10
        self._rotors_answered = self._wheels_answered = False
        self._range_sensors.restart(simulation)
        self._failsafe.publish(Bool(data=simulation.failsafe))
        self._restart_clock()
        self._show_vehicle(simulation)
        self._tell_clock(simulation)
        self._tell_tick()
        self._say()

    def _restart_clock(self) -> None:
        self._pacer.start(time.monotonic())
        self._factor_from, self._factor = None, math.nan
        self._waited_since = math.inf

    # what the services ask

    @property
    def simulation(self) -> Simulation | None:
        """None while there is no ground yet."""
        return self._simulation

    @property
    def broken(self) -> str:
        """Why it cannot go on before a reset; "": it can."""
        return self._broken

    def go(self, state: int) -> None:
        """To play, pause or stop; to stop is to reset, too."""
        self.run_state = state
        self.get_logger().info(f"the simulation is {STATES[state]}")
        if state == STOPPED:
            self.begin_anew(True, True)
        else:
            self._restart_clock()
            self._say()

    def begin_anew(self, time: bool, state: bool) -> None:
        """Reset."""
        assert self._simulation is not None
        self._simulation.reset(time=time, state=state)
        self._broken = ""
        self._from_here()

    def step(self, ticks: int) -> None:
        """So many ticks while paused; 0: no more."""
        self._steps_asked = ticks
        self._queue()

    def moved(self) -> None:
        """The vehicle was put elsewhere."""
        assert self._simulation is not None
        self._range_sensors.restart(self._simulation)
        self._show_vehicle(self._simulation)
        self._say()

    # commands

    def _take_rotors(self, message: RotorCommand) -> None:
        if self._simulation is None:
            return
        try:
            self._simulation.command_rotors(convert.msg_to_rotor_command(message, self._simulation.time))
        except CommandError as error:
            self._refuse("cmd/rotors", "refused_rotor_commands", str(error))
            return
        if self._lock_step and stamp_to_ns(message.header.stamp) == self._simulation.time_ns:
            self._rotors_answered = True
            self._work()

    def _take_wheels(self, message: WheelCommand) -> None:
        if self._simulation is None:
            return
        try:
            self._simulation.command_wheels(convert.msg_to_wheel_command(message, self._simulation.time))
        except CommandError as error:
            self._refuse("cmd/wheels", "refused_wheel_commands", str(error))
            return
        if self._lock_step and stamp_to_ns(message.header.stamp) == self._simulation.time_ns:
            self._wheels_answered = True
            self._work()

    def _refuse(self, topic: str, counter: str, why: str) -> None:
        self._diagnostics.count(counter)
        self._refused, self._refused_at = f"{topic} refused: {why}", time.monotonic()
        self.get_logger().warning(self._refused, throttle_duration_sec=2.0)
        self._say()

    def _take_mode(self, message: String) -> None:
        """`arm` ends the fail-safe; the other words are for flight_control_node."""
        simulation = self._simulation
        if message.data != "arm" or simulation is None or not simulation.failsafe:
            return
        why_not = simulation.end_failsafe()
        if why_not:
            self.get_logger().warning(f"the fail-safe goes on: {why_not}")
        else:
            self.get_logger().info("the fail-safe has ended")
            self._failsafe.publish(Bool(data=False))
        self._say()

    def destroy_node(self) -> None:
        """Ends the thread of lidar and cameras first."""
        self._range_sensors.close()
        super().destroy_node()

    # going on

    def _queue(self) -> None:
        """`_work` once more, after what has come in meanwhile."""
        if not self._is_queued and self.executor is not None:
            self._is_queued = True
            self.executor.create_task(self._work_on)

    def _work_on(self) -> None:
        self._is_queued = False
        self._work()

    def _work(self) -> None:
        """Runs the ticks that are due."""
        simulation = self._simulation
        if simulation is None or self._broken:
            return
        begin = time.monotonic()
        if self._steps_asked:
            allowed = self._steps_asked
        elif self.run_state == PLAYING:
            allowed = self._pacer.due(begin)
        else:
            return
        ran = 0
        while ran < allowed and self._may_go_on():
            if not self._tick(simulation):
                return
            ran += 1
            if time.monotonic() - begin > BATCH_S:
                break
        if self._steps_asked:
            self._steps_asked -= ran
            if not self._steps_asked:
                self._show_vehicle(simulation)
                self._asked.stepped()
        else:
            self._pacer.ran(ran)
        if ran < allowed and self._may_go_on():
            self._queue()
        elif not ran and allowed and not self._lock_step:
            self._diagnostics.count("waits_for_commands")

    def _may_go_on(self) -> bool:
        if self._lock_step:
            return self._rotors_answered and self._wheels_answered
        simulation = self._simulation
        if not self._patience or simulation is None or simulation.failsafe:
            return True
        now = time.monotonic()
        if not simulation.stale(simulation.period):
            self._fresh_at = now
            return True
        return now - self._fresh_at >= self._patience

    def _tick(self, simulation: Simulation) -> bool:
        in_failsafe = simulation.failsafe
        self._rotors_answered = self._wheels_answered = False
        try:
            samples = simulation.tick()
        except DynamicsError as error:
            self._broken, self.run_state = str(error), PAUSED
            self.get_logger().error(f"the simulation cannot go on: {error}")
            self._steps_asked = 0
            if self._asked.stepping:
                self._asked.stepped(self._broken)
            self._say()
            return False
        if simulation.failsafe and not in_failsafe:
            self._failsafe.publish(Bool(data=True))
            self.get_logger().error(f"fail-safe: commands are too old ({', '.join(simulation.stale())})")
            self._say()
        ticks = simulation.ticks
        if self._clock_out is not None and _due(ticks, simulation.period, CLOCK_RATE):
            self._tell_clock(simulation)
        self._counts = self._samples.publish(samples)
        self._range_sensors.follow(simulation)
        if _due(ticks, simulation.period, SHOW_RATE):
            self._show_vehicle(simulation)
        self._tell_tick()
        return True

    # what is published beside the samples

    def _tell_clock(self, simulation: Simulation) -> None:
        if self._clock_out is not None:
            self._clock_out.publish(ClockMessage(clock=ns_to_stamp(simulation.time_ns)))

    def _show_vehicle(self, simulation: Simulation) -> None:
        self._shown_at = time.monotonic()
        stamp_ns = simulation.time_ns if self._publish_clock else self.get_clock().now().nanoseconds
        self._show.publish(simulation, stamp_ns, self._source)

    def _tell_tick(self) -> None:
        if self._tick_end is None or self._simulation is None:
            return
        message = SimulationTick(count=self._counts)
        message.header.stamp = ns_to_stamp(self._simulation.time_ns)
        self._tick_end.publish(message)
        self._told_at = self._waited_since = time.monotonic()

    def _now_and_then(self) -> None:
        now, simulation = time.monotonic(), self._simulation
        if simulation is None:
            return
        if self._lock_step and not self._may_go_on() and now - self._told_at >= TOLD_AGAIN_S:
            since = self._waited_since
            self._tell_tick()
            self._waited_since = since
            self._diagnostics.count("ticks_told_again")
        if now - self._shown_at >= STILL_SHOWN_S:
            self._show_vehicle(simulation)

    # diagnostics

    def _measure(self, simulation: Simulation) -> None:
        now = time.monotonic()
        if self._factor_from is None:
            self._factor_from = now, simulation.time
            return
        began, at = self._factor_from
        if now - began >= 0.9:
            self._factor = (simulation.time - at) / (now - began)
            self._factor_from = now, simulation.time

    def _say(self) -> None:
        simulation, now = self._simulation, time.monotonic()
        values: dict[str, Any] = {"vehicle": self._vehicle, "state": STATES[self.run_state]}
        trouble = "" if self._ground is None else self._ground.trouble
        if simulation is None:
            problem = self._map_problem or trouble
            self._diagnostics.set(ERROR if problem else STALE, problem or NOT_YET, **values)
            return
        self._measure(simulation)
        values |= {
            "time_s": f"{simulation.time:.3f}",
            "real_time_factor": f"{self._factor:.2f}",
            "overruns": self._pacer.overruns,
            "lost_s": f"{self._pacer.lost:.2f}",
            "dropped_commands": simulation.dropped,
        }
        waited = now - self._waited_since
        slow = self._factor < SLOW * self._wanted_factor and self.run_state == PLAYING and not self._lock_step
        if self._broken:
            level, text = ERROR, f"the simulation cannot go on: {self._broken}"
        elif trouble:
            level, text = ERROR, trouble
        elif simulation.failsafe:
            old = ", ".join(simulation.stale())
            level, text = ERROR, f"fail-safe: {f'commands are too old ({old})' if old else 'waits for arm on cmd/mode'}"
        elif simulation.crashed:
            level, text = WARN, "the vehicle has crashed: reset_simulation or set_entity_state puts it on its wheels"
        elif now - self._refused_at < REFUSED_SHOWN_S:
            level, text = WARN, self._refused
        elif self._lock_step and not self._may_go_on() and waited > WAITED_S:
            missing = [
                name
                for name, answered in (("cmd/rotors", self._rotors_answered), ("cmd/wheels", self._wheels_answered))
                if not answered
            ]
            level, text = WARN, f"lock-step: waits for {' and '.join(missing)} of {simulation.time:.3f} s"
        elif slow:
            level, text = WARN, f"runs at {self._factor:.2f} × real time, {self._wanted_factor:g} is wanted"
        else:
            level, text = OK, STATES[self.run_state]
        self._diagnostics.set(level, text, **values)


def _due(ticks: int, period: float, rate: float) -> bool:
    """Whether a multiple of 1/rate lies within this tick."""
    return math.floor(ticks * period * rate + 1e-6) > math.floor((ticks - 1) * period * rate + 1e-6)


def main() -> None:
    """Entry point of the executable `amphibious_sim_node`."""
    run(AmphibiousSimNode, often=True)
