# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A controller of your own for the land-air vehicle.

It drives 8 m, takes off, flies to a goal and lands there.

python examples/tutorials/land_air_controller.py flight.png
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from rfly_amphibious import AmphibiousModel, Controls, Run, VehicleParameters

G = 9.80665  # m/s²
UP = np.array((0.0, 0.0, 1.0))
TO_GOAL = np.array((8.0, 4.0, 3.0))  # m, from the place of take-off


class LandAirController:
    """Return controls for rotors, wheels and brakes from position, velocity, attitude and rates.

    World axes are ENU, body axes FLU, all units SI.
    """

    def __init__(self, params: VehicleParameters) -> None:
        x, y, _ = params.rotor_position.T
        k = params.thrust_coefficient
        q = params.torque_coefficient
        effect = np.array([np.full(len(x), k), k * y, -k * x, -q * np.array(params.rotor_spin)])
        # (thrust, three moments) -> squares of the rotor speeds
        self._mixer = np.linalg.pinv(effect)

        self._mass = params.mass
        self._inertia = np.array(params.inertia[:3])
        self._largest = params.max_rotor_speed**2
        self.phase = "drive"
        self._goal = np.zeros(3)

    def __call__(self, now) -> Controls:
        # next phase
        if self.phase == "drive" and now.position[0] > 8.0:
            self.phase = "fly"
            self._goal = now.position + TO_GOAL
        elif self.phase == "fly" and np.linalg.norm(self._goal - now.position) < 0.2:
            self.phase = "land"
            self._touchdown = self._goal[2] - 3.0
        elif self.phase == "land" and now.position[2] < self._touchdown + 0.03:
            self.phase = "stand"

        # on the ground
        if self.phase == "drive":
            return Controls(drive_torque=10.0 * (2.0 - now.velocity[0]))
        if self.phase == "stand":
            return Controls(brake_torque=5.0)

        # velocity wanted, then acceleration
        if self.phase == "land":
            self._goal[2] = now.position[2] - 0.6  # so it sinks at 0.6 m/s
        velocity = np.clip(self._goal - now.position, -2.0, 2.0)
        acceleration = np.clip(2.5 * (velocity - now.velocity), -3.0, 3.0) + G * UP

        # attitude that gives it
        rotation = Rotation.from_quat(now.orientation)
        up = rotation.inv().apply(acceleration)  # where the thrust has to point, in the body
        east = rotation.inv().apply((1.0, 0.0, 0.0))  # where the nose has to point
        error = np.array([-up[1] / G, up[0] / G, east[1]])

        moments = self._inertia * ((50.0, 50.0, 8.0) * error - (13.0, 13.0, 6.0) * now.rates)
        squares = self._mixer @ (self._mass * up[2], *moments)
        return Controls(rotor_speed=np.sqrt(np.clip(squares, 0.0, self._largest)))


def fly(duration: float = 20.0) -> tuple[Run, LandAirController]:
    """Run a flight over level ground, faster than real time."""
    params = VehicleParameters.load("scale")
    model = AmphibiousModel(params)
    controller = LandAirController(params)
    return model.run(model.standing(), controller, duration, control_period=0.01), controller


def draw(run: Run, path: Path) -> None:
    """Draw the track from above and from the side."""
    from matplotlib.figure import Figure

    x, y, z = run.x[:, :3].T
    figure = Figure(figsize=(9.0, 5.0), layout="constrained")
    above, side = figure.subplots(2, 1, sharex=True)

    above.plot(x, y, color="#2f6db3")
    above.set(ylabel="y north (m)", title="Drive, fly, land")
    side.plot(x, z - z[0], color="#c8322b")
    side.set(xlabel="x east (m)", ylabel="height (m)")
    for axes in (above, side):
        axes.grid(alpha=0.3)

    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    run, controller = fly()
    draw(run, Path(sys.argv[1] if len(sys.argv) > 1 else "flight.png"))
    print(f"{controller.phase} at {np.round(run.final.position, 2)} after {run.final.time:.0f} s")
