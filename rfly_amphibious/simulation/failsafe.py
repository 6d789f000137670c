"""Failsafe of a simulated vehicle without actuator commands: descent on ground truth."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rfly_amphibious.control.modes import Mode
from rfly_amphibious.control.pilot import Pilot
from rfly_amphibious.dynamics.model import AmphibiousModel
from rfly_common.errors import ConfigError


class FailSafe(Pilot):
    """The pilot in ABORT: level, 0.5 m/s down, brakes after contact. docs/model, section 11.1."""

    def __init__(self, model: AmphibiousModel, period: float, failed: Iterable[int] = ()) -> None:
        """`failed`: rotors (from 0) that turn no more."""
        super().__init__(model, [], Mode.ABORT, period)
        for rotor in failed:
            self.lose_rotor(rotor)

    def save(self) -> dict[str, Any]:
        """All that its next commands depend on beside the vehicle's state, fit for JSON."""
        return {
            "place": self._place.tolist(),
            "attitude": self._attitude.tolist(),
            "integral": self.flight._integral.tolist(),
            "numbers": [
                self._yaw,
                self._collective,
                self.logic.contact.load_share,
                self.logic.contact.wheels_down,
                self.logic.since,
            ],
            "flags": [self._down, self._fresh],
            "failed": sorted(self._failed),
        }

    @classmethod
    def restored(cls, model: AmphibiousModel, period: float, saved: dict[str, Any]) -> FailSafe:
        """One that goes on from `save`. Raises ConfigError where it is none."""
        try:
            made = cls(model, period, [int(rotor) for rotor in saved["failed"]])
            made._place, made._attitude = (np.array(saved[key], float) for key in ("place", "attitude"))
            made.flight._integral = np.array(saved["integral"], float)
            (
                made._yaw,
                made._collective,
                made.logic.contact.load_share,
                made.logic.contact.wheels_down,
                made.logic.since,
            ) = saved["numbers"]
            made._down, made._fresh = map(bool, saved["flags"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ConfigError(f"no saved state of a fail-safe ({error!r})") from None
        return made
