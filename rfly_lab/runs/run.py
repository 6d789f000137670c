# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Scenario runs without ROS, as fast as the machine can, with the truth pilot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState, Outputs
from rfly_amphibious.dynamics.stepper import Stepper
from rfly_amphibious.dynamics.wind_field import WindField
from rfly_amphibious.scenarios.scenario import Scenario
from rfly_amphibious.simulation.commands import Mode, RotorQuantity
from rfly_amphibious.simulation.events import RotorFails, gust_wind, without_rotors
from rfly_amphibious.simulation.faults import Fault, faulty_controls
from rfly_amphibious.simulation.power_system import PowerSystem
from rfly_amphibious.simulation.simulation import STEP
from rfly_amphibious.vehicle import state_layout
from rfly_autonomy.control.pilot import Pilot
from rfly_autonomy.control.setpoint import Setpoint
from rfly_autonomy.estimation.estimate import Estimate
from rfly_autonomy.guidance.mission_guide import MissionGuide
from rfly_common.errors import ConfigError
from rfly_lab.runs.recorder import RunRecorder, ScenarioRun, run_to_end
from rfly_missions.mission.legs import Leg

SAMPLE_STEPS = 20
"""Steps of the model between samples of the run."""

DRIVING_PERIOD = 0.01
"""Time between commands while the vehicle drives, s."""

FLYING_PERIOD = 0.004
"""Time between commands in flight, s."""


def run_scenario(
    scenario: Scenario, progress: Callable[[float], None] | None = None
) -> ScenarioRun:
    """Run a scenario to its end condition, or until that cannot be reached any more.

    The same scenario gives the same numbers, bit by bit. `progress` is called with the simulated
    seconds now and then. Raise ConfigError for a manoeuvre, which needs the controllers of a closed
    loop.
    """
    if scenario.manoeuvre is not None:
        raise ConfigError(
            f"{scenario.name}: a manoeuvre is on top of the controllers' commands: "
            "run it with --estimate"
        )
    return run_to_end(_TruthLoop(scenario), progress)


class MissionPilot:
    """Truth pilot along the legs of a mission; its `guide` takes the truth for its estimate."""

    def __init__(
        self,
        model: AmphibiousModel,
        legs: Sequence[Leg],
        rotor_command: RotorQuantity = "speed",
    ) -> None:
        self.guide = MissionGuide(legs, model.params, model.terrain, solids=model.solids)
        self._pilot = Pilot(model, self._setpoint, Mode.DRIVE, DRIVING_PERIOD, rotor_command)

    @property
    def mode(self) -> Mode:
        """Present mode of the vehicle."""
        return self._pilot.logic.mode

    @property
    def period(self) -> float:
        """Time for which the last commands hold, s."""
        return self._pilot.period

    def __call__(self, state: ModelState, outputs: Outputs | None = None) -> Controls:
        """Return the commands from a state.

        `outputs`: those of the last step, if the caller has them.
        """
        self._pilot.period = DRIVING_PERIOD if self.mode is Mode.DRIVE else FLYING_PERIOD
        return self._pilot(state, outputs)

    def lose_rotor(self, rotor: int) -> None:
        """Fly without a rotor (from 0).

        Off the ground the flight is aborted; on the ground there is no take-off any more.
        """
        self._pilot.lose_rotor(rotor)
        failed = sorted(self._pilot.flight_modes.failed_rotors)
        numbers = ", ".join(str(number + 1) for number in failed)
        self.guide.no_takeoff = f"rotor {numbers} failed"

    def _setpoint(self, state: ModelState, mode: Mode) -> Setpoint:
        """Return the guide's setpoint for a state."""
        seen = Estimate(state.time, state.position, state.orientation, state.velocity, state.rates)
        return self.guide.step(seen, mode)


class _TruthLoop:
    """Model under a MissionPilot.

    It is fast, because it has no sensors and commands hold for up to 10 ms.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        model = scenario.model()
        self._pilot = MissionPilot(model, scenario.legs, scenario.rotor_command)
        begin = model.standing(*scenario.start, scenario.heading)
        self._steps = round(scenario.end_time / STEP)
        self._stepper = Stepper(model, begin, self._steps, STEP, scenario.wind, scenario.method)

        self._failures = sorted(
            (e for e in scenario.events if isinstance(e, RotorFails)), key=lambda e: e.time
        )
        self._failed: list[int] = []
        self._faults = [event for event in scenario.events if isinstance(event, Fault)]
        columns = state_layout.state_columns(model.params.rotors, len(model.params.wheels))
        self._rotor_columns = columns["rotor_speed"]
        self._wind_field = WindField(model, scenario.wind)
        self._disturbance = np.zeros(3)

        self.power = PowerSystem(scenario.params)
        self.outputs = model.outputs(begin)
        self.guide = self._pilot.guide
        self.recorder = RunRecorder(
            scenario, sensor_effect=": no effect, this pilot sees the truth"
        )

    @property
    def state(self) -> ModelState:
        return self._stepper.state

    @property
    def time_is_up(self) -> bool:
        return self._stepper.done >= self._steps

    def tick(self) -> None:
        """Run one command of the pilot, for the steps for which it holds."""
        stepper = self._stepper
        pilot = self._pilot
        before = stepper.state

        # failures and commands
        while self._failures and self._failures[0].time <= before.time + 1e-9:
            rotor = self._failures.pop(0).rotor
            self._failed.append(rotor)
            pilot.lose_rotor(rotor)
        controls = pilot(before, self.outputs)
        controls = without_rotors(controls, self._failed, self._scenario.params.rotors)
        faults = [fault for fault in self._faults if fault.acts(before.time + 1e-9)]
        spins = before.x[self._rotor_columns]
        controls = faulty_controls(controls, faults, self._scenario.params, spins)
        self.power.suffer(faults)
        controls = self.power.limited(controls)
        self.recorder.enter(before.time, pilot.mode)

        # steps
        gusts = gust_wind(self._scenario.events, before.time)
        self._disturbance = gusts + self._wind_field.change(before.position)
        steps = min(
            round(pilot.period / STEP),
            SAMPLE_STEPS - stepper.done % SAMPLE_STEPS,
            self._steps - stepper.done,
        )
        stepper.advance(controls, steps, self._disturbance)

        self.outputs = stepper.outputs
        self.power.draw(stepper.state.x, self.outputs, steps * STEP)
        self.recorder.watch(stepper.state, self.outputs, steps * STEP)
        if stepper.done % SAMPLE_STEPS == 0:
            self.sample()

    def sample(self) -> None:
        """Keep the state and the wind."""
        now = self.state
        wind = (
            self._scenario.wind.mean
            + now.memory[state_layout.GUST : state_layout.GUST + 3]
            + self._disturbance
        )
        self.recorder.sample(now, self.outputs, wind)
