"""Truth pilot with a mission: drives along waypoints, takes off, flies, lands, drives on."""

from __future__ import annotations

from collections.abc import Sequence

from rfly_amphibious.control.modes import Mode, Situation
from rfly_amphibious.control.pilot import Floats, Pilot
from rfly_amphibious.dynamics.model import AmphibiousModel, ModelState
from rfly_amphibious.estimation.estimate import Estimate
from rfly_amphibious.guidance.legs import Leg
from rfly_amphibious.guidance.mission_guide import MissionGuide

DRIVING_PERIOD, FLYING_PERIOD = 0.01, 0.004
"""s between commands"""


class MissionPilot(Pilot):
    """Carries out legs as its `guide` says."""

    def __init__(self, model: AmphibiousModel, legs: Sequence[Leg]) -> None:
        super().__init__(model, [], Mode.DRIVE, DRIVING_PERIOD)
        self.guide = MissionGuide(legs, model.params, model.terrain)

    @property
    def done(self) -> bool:
        """Whether all legs are."""
        return self.guide.done

    @property
    def problem(self) -> str:
        """Why they can't be carried out."""
        return self.guide.problem

    @property
    def log(self) -> list[tuple[float, str]]:
        """What happened, and when."""
        return self.guide.log

    def lose_rotor(self, rotor: int) -> None:
        """See Pilot."""
        super().lose_rotor(rotor)
        numbers = ", ".join(str(rotor + 1) for rotor in sorted(self._failed))
        self.guide.no_takeoff = f"rotor {numbers} failed"

    def _choose(self, state: ModelState, rotation: Floats, now: Situation) -> None:
        mode = self.logic.mode
        self.period = DRIVING_PERIOD if mode is Mode.DRIVE else FLYING_PERIOD
        seen = Estimate(state.time, state.position, state.orientation, state.velocity, state.rates)
        self._setpoint = self.guide.step(seen, mode)
        if self._setpoint.mode is not None:
            self._wanted_mode = self._setpoint.mode
