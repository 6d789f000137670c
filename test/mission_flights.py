# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Simulated vehicles on missions without ROS, and the record of their flights."""

from rfly_missions.execution.runner import MissionRunner
from rfly_missions.followers.fixed_wing import FixedWing
from rfly_missions.followers.ground import Ground
from rfly_missions.followers.multirotor import Multirotor
from rfly_missions.mission.items import MissionItem

KINDS = ("multirotor", "fixed-wing")
T = MissionItem.takeoff((0, 0, -20))
R = MissionItem.return_to_launch()


class Flight:
    """A simulated vehicle on a mission, and the record of its flight."""

    def __init__(
        self,
        kind,
        items,
        *,
        dt=0.05,
        terrain=None,
        min_height=2.0,
        home=(0.0, 0.0, 0.0),
        custom=None,
        limits=None,
        **load,
    ):
        ground = Ground(terrain, min_height)
        vehicle = Multirotor if kind == "multirotor" else FixedWing
        self.vehicle = vehicle(home, ground=ground, limits=limits)

        self.dt = dt
        self.t = 0.0
        self.logged = []
        self.runner = MissionRunner(
            kind, follower=self.vehicle, custom=custom, log=self.logged.append
        )
        self.runner.load(items, home, **load)

        self.shown = []
        self.times = []
        self.track = []
        self.velocities = []
        self.eulers = []
        self.state = None

    def step(self):
        self.state = self.runner.step(self.dt)
        self.t += self.dt
        if not self.shown or self.switches != self.runner.manager.state.switches:
            self.switches = self.runner.manager.state.switches
            self.shown.append((self.state.params.current.mode.name, self.state.item_index))
            self.times.append(self.t)
        self.track.append(self.vehicle.position)
        self.velocities.append(self.vehicle.velocity)
        self.eulers.append(self.vehicle.euler)

    def until(self, ready, limit=900.0):
        end = self.t + limit
        while not ready():
            self.step()
            assert self.t < end, f"{self.shown} at {self.vehicle.position}"
        return self

    def to_end(self, limit=900.0):
        self.until(lambda: self.state is not None and self.state.finished, limit)
        return self

    def run(self, seconds):
        end = self.t + seconds
        return self.until(lambda: self.t >= end, seconds + 1)
