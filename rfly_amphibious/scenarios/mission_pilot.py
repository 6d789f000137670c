"""Truth pilot that carries out a mission: drives to waypoints, takes off, flies, lands, drives on."""

from __future__ import annotations

from collections.abc import Sequence

from rfly_amphibious.control.commands import Setpoint
from rfly_amphibious.control.modes import Mode
from rfly_amphibious.control.pilot import Pilot
from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState, Outputs
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.guidance.legs import Leg
from rfly_amphibious.guidance.mission_guide import MissionGuide

DRIVING_PERIOD, FLYING_PERIOD = 0.01, 0.004
"""s between commands"""


class MissionPilot:
    """Carries out legs as its `guide` says, which takes the truth for its estimate."""

    def __init__(self, model: AmphibiousModel, legs: Sequence[Leg]) -> None:
        self.guide = MissionGuide(legs, model.params, model.terrain)
        self._pilot = Pilot(model, self._setpoint, Mode.DRIVE, DRIVING_PERIOD)

    @property
    def mode(self) -> Mode:
        """In which the vehicle is."""
        return self._pilot.logic.mode

    @property
    def period(self) -> float:
        """s for which the commands given last hold."""
        return self._pilot.period

    def __call__(self, state: ModelState, outputs: Outputs | None = None) -> Controls:
        """The commands from a state on; `outputs`: those of the last step, where the caller has them."""
        self._pilot.period = DRIVING_PERIOD if self.mode is Mode.DRIVE else FLYING_PERIOD
        return self._pilot(state, outputs)

    def lose_rotor(self, rotor: int) -> None:
        """Rotor (from 0) turns no more: off the ground the flight is aborted, on it there is no take-off any more."""
        self._pilot.lose_rotor(rotor)
        numbers = ", ".join(str(number + 1) for number in sorted(self._pilot.flight_modes.failed_rotors))
        self.guide.no_takeoff = f"rotor {numbers} failed"

    def _setpoint(self, state: ModelState, mode: Mode) -> Setpoint:
        seen = Estimate(state.time, state.position, state.orientation, state.velocity, state.rates)
        return self.guide.step(seen, mode)
