"""Failsafe of a simulated vehicle whose actuators nobody commands any more: it sees the truth and goes down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rfly_amphibious.control.modes import Mode
from rfly_amphibious.control.pilot import Pilot, timed_setpoints
from rfly_amphibious.dynamics.model import AmphibiousModel, Controls, ModelState, Outputs
from rfly_common.errors import ConfigError


class FailSafe:
    """A pilot in ABORT: level, 0.5 m/s down, brakes after contact. docs/model, section 11.1."""

    def __init__(self, model: AmphibiousModel, period: float, failed: Iterable[int] = ()) -> None:
        """`failed`: rotors (from 0) that turn no more."""
        self._pilot = Pilot(model, timed_setpoints([]), Mode.ABORT, period)
        for rotor in failed:
            self.lose_rotor(rotor)

    def __call__(self, state: ModelState, outputs: Outputs | None = None) -> Controls:
        """The commands from a state on; `outputs`: those of the last step, where the caller has them."""
        return self._pilot(state, outputs)

    def lose_rotor(self, rotor: int) -> None:
        """Rotor (from 0) turns no more: the others do what they can."""
        self._pilot.lose_rotor(rotor)

    def save(self) -> dict[str, Any]:
        """All that its next commands depend on beside the vehicle's state, fit for JSON."""
        modes, logic = self._pilot.flight_modes, self._pilot.logic
        return {
            "place": modes.position.tolist(),
            "attitude": modes.attitude.tolist(),
            "integral": modes.position_controller.integral.tolist(),
            "numbers": [modes.yaw, modes.thrust, logic.contact.load_share, logic.contact.wheels_down, logic.since],
            "flags": [modes.touched, not self._pilot.entered],
            "failed": sorted(modes.failed_rotors),
        }

    @classmethod
    def restored(cls, model: AmphibiousModel, period: float, saved: dict[str, Any]) -> FailSafe:
        """One that goes on from `save`. Raises ConfigError where it is none."""
        try:
            made = cls(model, period, [int(rotor) for rotor in saved["failed"]])
            modes, logic = made._pilot.flight_modes, made._pilot.logic
            modes.position, modes.attitude = (np.array(saved[key], float) for key in ("place", "attitude"))
            modes.position_controller.integral = np.array(saved["integral"], float)
            modes.yaw, modes.thrust, load_share, wheels_down, logic.since = saved["numbers"]
            logic.contact.load_share, logic.contact.wheels_down = load_share, wheels_down
            modes.touched, fresh = map(bool, saved["flags"])
            made._pilot.entered = not fresh
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ConfigError(f"no saved state of a failsafe ({error!r})") from None
        return made
