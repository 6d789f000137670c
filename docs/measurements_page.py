# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tables of docs/reference/measurements.md: published measurements beside the model's figures.

They come from the numbers below and the vehicles' sets. docs/reference_pages.py appends them to the
page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

import numpy as np

from rfly_amphibious.vehicle.parameters import VehicleParameters
from rfly_common.physics import AIR_DENSITY, GRAVITY

BITCRAZE = (
    "https://github.com/bitcraze/crazyflie-firmware/blob/"
    "25094c66b16462dde3bf13df3b7ae365af11431a/docs/functional-areas/pwm-to-thrust.md"
)
PYBULLET = (
    "https://github.com/utiasDSL/gym-pybullet-drones/blob/"
    "19f3a9dffa7d6895836e48896d05719a44762be3/gym_pybullet_drones/assets/cf2x.urdf"
)
ROTORS = (
    "https://github.com/ethz-asl/rotors_simulator/blob/"
    "114bab19a382540f2f5f60edd7da9929d064321e/rotors_description/urdf/hummingbird.xacro"
)
ROTORPY = (
    "https://github.com/spencerfolk/rotorpy/blob/"
    "4d7fca10e451d43e92d6a037e3a8f3181d4ab1c0/rotorpy/vehicles/hummingbird_params.py"
)
ROLLING = "https://www.engineeringtoolbox.com/rolling-friction-resistance-d_1303.html"
MARKS = (
    "https://www.engineersedge.com/mechanics_machines/coefficients_of_rolling_friction__16286.htm"
)
HYTAQ = "http://www.ubergizmo.com/2012/11/hytaq-flying-robot/"
ROLLER = "https://arxiv.org/abs/2303.00668"
SINGLE_WHEEL = "https://arxiv.org/abs/2003.09242"
BOREAL = (
    "https://github.com/norlab-ulaval/BorealTC/blob/"
    "fe64e386694528899db299e78a859dcab82f6b01/data/borealtc/ASPHALT"
)
BOREAL_CONSTANTS = (
    "https://github.com/norlab-ulaval/BorealTC/blob/"
    "fe64e386694528899db299e78a859dcab82f6b01/utils/constants.py"
)
PLANETARY = "https://doi.org/10.1177/0278364920908922"
PLANETARY_POWER = (
    "https://github.com/Tony-Xiang-Cao/MarsRover_EnergyPrediction_XceptionCNN_LSTM/blob/"
    "bb23ed6feaeb49d4ad3a459fcef154fd8966dae9/README.md"
)
GOPIGO = (
    "https://github.com/slowrunner/ROS2-GoPiGo3/blob/"
    "8ce0f3f7f237506a1600971fa659a6ee7622491c/Docs/Statistics.md"
)

CRAZYFLIE = np.array(
    [
        # A, g, V, 1/min
        (0.24, 0.0, 4.01, 0.0),
        (0.37, 1.6, 3.98, 4485.0),
        (0.56, 4.8, 3.95, 7570.0),
        (0.75, 7.9, 3.92, 9374.0),
        (0.94, 10.9, 3.88, 10885.0),
        (1.15, 13.9, 3.84, 12277.0),
        (1.37, 17.3, 3.80, 13522.0),
        (1.59, 21.0, 3.76, 14691.0),
        (1.83, 24.4, 3.71, 15924.0),
        (2.11, 28.6, 3.67, 17174.0),
        (2.39, 32.8, 3.65, 18179.0),
        (2.71, 37.3, 3.62, 19397.0),
        (3.06, 41.7, 3.56, 20539.0),
        (3.46, 46.0, 3.48, 21692.0),
        (3.88, 51.9, 3.40, 22598.0),
        (4.44, 57.9, 3.30, 23882.0),
    ]
)
"""Bitcraze's measurement of a Crazyflie 2.0: current, thrust of four rotors, voltage, speed."""
PYBULLET_THRUST = 3.16e-10
"""Thrust of a Crazyflie's rotor over its speed squared in gym-pybullet-drones, N min²."""
WEIGHT_G = 27.0
"""Mass of a Crazyflie in gym-pybullet-drones, g."""

HUSKY_MASS = 70.0
"""Mass of the Husky in BOREAL_CONSTANTS, kg."""
HUSKY_SPEED = 0.787
"""Mean speed of the steady stretches on asphalt, m/s: `steady` of the text."""
HUSKY_CURRENT = 3.84
"""Mean current of both sides in them, A."""
HUSKY_VOLTAGE = 24.0
"""Nominal voltage of its battery, V."""
HUSKY_MOTOR = (0.46, 0.141 / math.pi, 78.71, 0.165)
"""Resistance of a side's motor, ohm, voltage constant, V s/rad, gear ratio, and radius of a wheel
of 13 inches, m."""

GOPIGO_W = ((0.0, 3.8), (0.1, 4.3), (0.175, 4.8))
"""Speed, m/s, and power from the battery of a GoPiGo3, W."""

SETS = ("full", "scale", "scale_quad")
"""Sets of the suite that are compared."""


def measurements_page() -> str:
    """Return the sections of the page."""
    parts = [
        *_thrust_law(),
        *_coefficients(),
        *_rolling(),
        *_driving(),
        *_modes(),
        *_not_compared(),
    ]
    return "\n".join(parts).rstrip("\n") + "\n"


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False) + "\n"


def _points(*texts: str) -> list[str]:
    """Return the lines of a list."""
    filled = [
        textwrap.fill(
            f"- {text}",
            110,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        for text in texts
    ]
    return [*filled, ""]


def _not_compared() -> list[str]:
    return [
        "## Not compared",
        "",
        *_points(
            "**Power over speed in forward flight.** The data set of 209 flights of a DJI "
            "Matrice 100 ([Rodrigues and others "
            "2021](https://doi.org/10.1038/s41597-021-00930-x): voltage, current, position, "
            "wind) and measurements of a quadrotor over its pitch angle "
            "([2020](https://doi.org/10.1177/1756829320923565)) would allow it. They are not "
            "evaluated here.",
            "**Tyres.** [The comparison with other models](../model/17-comparison.md) compares "
            "with CommonRoad's cars, whose parameters are those of a simulation, too. No "
            "measurement of tyres of 0.11 m was found.",
            "**Stopping distances, dampers, struts.** No measurement was found that gives all "
            "parameters needed.",
        ),
    ]


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines] + [""]


def _thrust_law() -> list[str]:
    """Compare T = c_T ω² and P ~ T^1.5 with a measured rotor."""
    current, grams, voltage, rpm = CRAZYFLIE[1:].T
    speed = rpm * 2.0 * math.pi / 60.0
    thrust = 1e-3 * grams * GRAVITY / 4.0
    coefficient = float((thrust * speed**2).sum() / (speed**4).sum())
    power = current * voltage - CRAZYFLIE[0, 0] * CRAZYFLIE[0, 2]
    # power law through the lines of ten grams and more, in which the rotors carry a Crazyflie
    loaded = grams > 10.0
    exponent = float(np.polyfit(np.log(thrust[loaded]), np.log(power[loaded]), 1)[0])

    rows = []
    for k in (0, 2, 4, 6, 8, 10, 12, 14):
        law = coefficient * speed[k] ** 2
        rows.append(
            [
                f"{rpm[k]:.0f}",
                f"{grams[k]:.1f}",
                f"{4e3 * law / GRAVITY:.1f}",
                f"{100.0 * (law / thrust[k] - 1.0):+.0f} %",
                f"{power[k]:.2f}",
            ]
        )
    hover = float(np.interp(WEIGHT_G, grams, rpm)) * 2.0 * math.pi / 60.0
    at_hover = 1e-3 * WEIGHT_G * GRAVITY / 4.0 / hover**2
    published = PYBULLET_THRUST * (60.0 / (2.0 * math.pi)) ** 2
    heading = ("1/min", "measured, g", "c_T ϖ², g", "off by", "electric power, W")
    return [
        "## Thrust of a rotor over its speed",
        "",
        _paragraph(
            f"Bitcraze [measured]({BITCRAZE}) a Crazyflie 2.0 on a scale: thrust of all four "
            "rotors, their mean speed, voltage and current. Without inflow the model's law is T "
            f"= c_T ϖ² ([Eq. 4.3](../model/04-rotors.md)). The best c_T is {coefficient:.3g} N "
            "s². The electric power is less that of the electronics with the rotors at rest."
        ),
        *_table(heading, rows),
        *_points(
            "**Fits:** above 40 % of the largest speed the law is within "
            f"{_worst(speed, thrust, coefficient, 0.4):.0f} %. The vehicles of the suite hover at "
            f"{_shares()} of their largest speed.",
            "**Does not fit:** at the lowest speed the law gives "
            f"{_worst(speed, thrust, coefficient, 0.0):.0f} % too much. The real coefficient "
            "grows with the speed; an idling rotor is weaker than the model's.",
            "**Does not fit:** the model's shaft power grows with T^1.5, the measured electric "
            f"power with T^{exponent:.2f}. A constant efficiency between battery and shaft would "
            "be wrong for this brushed motor. The measurement does not separate motor and rotor.",
            f"**Spread of published values:** gym-pybullet-drones has [{published:.3g} N "
            f"s²]({PYBULLET}), {100.0 * (published / at_hover - 1.0):.0f} % more than this "
            f"measurement at the thrust of hovering ({WEIGHT_G:g} g).",
        ),
    ]


def _worst(speed: np.ndarray, thrust: np.ndarray, coefficient: float, share: float) -> float:
    """Return the largest error of the law above a share of the largest speed, %."""
    fast = speed > share * speed.max()
    return float(100.0 * np.abs(coefficient * speed[fast] ** 2 / thrust[fast] - 1.0).max())


def _shares() -> str:
    """Return the hover speeds of the sets as shares of their largest speeds."""
    loaded = [VehicleParameters.load(name) for name in SETS]
    shares = [100.0 * each.hover_speed / each.max_rotor_speed for each in loaded]
    return f"{min(shares):.0f} … {max(shares):.0f} %"


def _coefficients() -> list[str]:
    """Compare dimensionless coefficients of rotors."""
    published = (
        # name, radius m, thrust N s², torque / thrust m, source
        ("AscTec Hummingbird, RotorS", 0.1, 8.54858e-06, 0.016, ROTORS),
        ("AscTec Hummingbird, RotorPy", 0.1, 5.57e-06, 1.36e-07 / 5.57e-06, ROTORPY),
    )
    rows = []
    for name, radius, thrust, arm, source in published:
        rows.append(_rotor_row(f"[{name}]({source})", radius, thrust, arm))
    for name in SETS:
        p = VehicleParameters.load(name)
        arm = p.torque_coefficient / p.thrust_coefficient
        rows.append(_rotor_row(f"`{name}`", p.rotor_radius, p.thrust_coefficient, arm))
    inflow = math.pi * 5.57e-06 / (0.8 * 0.1)
    return [
        "## Coefficients of rotors",
        "",
        _paragraph(
            "C_T = c_T/(ρ π R⁴); Q/(T R) is torque over thrust and radius; the figure of merit "
            "in hover is FM = C_T^1.5/(√2 C_Q). The first two rows are two sources of one "
            "aircraft."
        ),
        *_table(("rotor", "R, m", "C_T", "Q/(T R)", "FM"), rows),
        *_points(
            "**Fits:** thrust and torque of the sets are those of the published rotors or "
            "somewhat less, at the figure of merit of the first source.",
            "**Does not fit each other:** the two sources differ by half in C_T and in Q/(T R). "
            "They are parameters of simulators, not measurements; see their own sources.",
            "**Inflow:** c_V = π c_T/(J₀ R) ([Eq. 4.4](../model/04-rotors.md)) with the J₀ = 0.8 "
            f"of `scale` is {inflow:.3g} kg/rad for the rotor of the second row. RotorPy has "
            f"2.32e-04, which is {100.0 * (2.32e-4 / inflow - 1.0):.0f} % more, and notes that it "
            "was reduced by a factor of ten because the first value was too large.",
        ),
    ]


def _rotor_row(name: str, radius: float, thrust: float, arm: float) -> list[str]:
    """Return the row of a rotor: thrust over speed squared, N s², torque over thrust, m."""
    c_t = thrust / (AIR_DENSITY * math.pi * radius**4)
    c_q = c_t * arm / radius
    merit = c_t**1.5 / (math.sqrt(2.0) * c_q)
    return [name, f"{radius:g}", f"{c_t:.4f}", f"{arm / radius:.3f}", f"{merit:.2f}"]


def _rolling() -> list[str]:
    """Compare rolling resistance."""
    rows = [
        [f"[car tyres on concrete, new asphalt, small cobbles]({ROLLING})", "0.01 … 0.015"],
        [f"[car tyres on tar or asphalt]({ROLLING})", "0.02"],
        [f"[pneumatic tyres on a hard road, Moyer, in Marks' handbook]({MARKS})", "0.008"],
    ]
    rows += [[f"`{name}`", f"{VehicleParameters.load(name).rolling_resistance:g}"] for name in SETS]
    return [
        "## Rolling resistance",
        "",
        *_table(("tyres", "C_rr"), rows),
        *_points(
            "**Fits:** `full` has tyres of a car, the small ones are at the upper end.",
            "**Not in the model:** growth with the speed, and soft ground, for which the [same "
            f"table]({ROLLING}) has 0.2 to 0.4 (loose sand).",
        ),
    ]


def _driving() -> list[str]:
    """Compare the power of driving."""
    p = VehicleParameters.load("scale")
    share = p.rolling_resistance * GRAVITY / p.drive_efficiency
    husky = share * HUSKY_MASS * HUSKY_SPEED

    # drawn from the battery, or through the motors
    side = HUSKY_CURRENT / 2.0
    resistance, constant, gear, radius = HUSKY_MOTOR
    induced = constant * gear * HUSKY_SPEED / radius
    least = 2.0 * side * (induced + resistance * side)
    most = HUSKY_CURRENT * HUSKY_VOLTAGE
    rows = [
        [
            f"[Husky A200 on asphalt]({BOREAL}), its motors",
            f"{HUSKY_SPEED:g}",
            f"{least:.0f} … {most:.0f}",
            f"{husky:.1f}",
        ],
        [
            f"[Husky A200 on sand and gravel]({PLANETARY}), its motors, "
            f"[mean of run 2]({PLANETARY_POWER})",
            "",
            "257",
            "",
        ],
    ]
    stands = GOPIGO_W[0][1]
    for speed, power in GOPIGO_W:
        rows.append([f"[GoPiGo3]({GOPIGO}), all of it", f"{speed:g}", f"{power:g}", ""])

    # by the first speed to the second
    (_, first_power), (_, second_power) = GOPIGO_W[1:]
    ratio = GOPIGO_W[2][0] / GOPIGO_W[1][0]
    expected = stands + (first_power - stands) * ratio
    heavy = (first_power - stands) / GOPIGO_W[1][0] / share
    return [
        "## Power of driving",
        "",
        _paragraph(
            "Electric power of robots that drive straight on. For the model: power of steady "
            "driving on level ground with the robot's mass, and rolling resistance and drive "
            f"efficiency of `scale`, C_rr {p.rolling_resistance:g} and {p.drive_efficiency:g} "
            "([Eq. 4.21](../model/04-rotors.md))."
        ),
        *_table(("robot", "m/s", "measured, W", "model, W"), rows),
        *_points(
            f"**Husky:** {HUSKY_CURRENT:g} A on both sides together, mean of the 1,294 samples "
            "faster than 0.6 m/s before which both sides ran alike (0.06 m/s) and steadily "
            "(0.08 m/s) for 1.5 s. The log has no voltages: the first figure takes the currents as "
            f"those of the motors, with the [motor constants and the mass]({BOREAL_CONSTANTS}) of "
            f"the same source, {HUSKY_MASS:g} kg; the second as drawn from {HUSKY_VOLTAGE:g} V.",
            f"**Does not fit:** the Husky needs {least / husky:.0f} to {most / husky:.0f} times "
            "the model's power. Its gears and brushed motors turn without load at 1.35 A each "
            "(same source), which is most of it. A set for such a robot needs a "
            f"`battery.drive_efficiency` of {p.drive_efficiency * husky / most:.2f} to "
            f"{p.drive_efficiency * husky / least:.2f}.",
            "**Does not fit:** the wheels of the GoPiGo3 take "
            f"{first_power - stands:.1f} W at {GOPIGO_W[1][0]:g} m/s, in the model those of a "
            f"robot of {heavy:.0f} kg; it has a fraction of this. **Fits:** the form. Base load "
            "and a power in proportion to the speed, both from the first two rows, give "
            f"{expected:.2f} W in the third, {100.0 * (expected / second_power - 1.0):+.0f} %.",
            "**Shipped sets:** direct drives and efficiencies are assumptions. Compare a log of "
            "your own vehicle before you trust the energy of a driven plan.",
        ),
    ]


def _modes() -> list[str]:
    """Compare what driving saves over flying."""
    rows = [
        [f"[HyTAQ]({HYTAQ}), rolls in a cage by its rotors", "27/5 = 5.4", "2400/600 = 4.0"],
        [f"[Roller-Quadrotor]({ROLLER}), unicycle drive", "41.2", "2.8"],
        [
            f"[one passive wheel]({SINGLE_WHEEL}), pushed by its rotors",
            "up to 1/(1 − 0.77) = 4.3",
            "",
        ],
    ]
    for name in SETS:
        hover, drive = _powers(name, 1.0)
        rows.append(
            [
                f"`{name}`: {hover / 1e3:.2f} kW in hover, {drive:.0f} W at 1 m/s",
                f"{hover / drive:.0f}",
                "",
            ]
        )
    return [
        "## What driving saves",
        "",
        _paragraph(
            "Time on the ground over time in the air, and way over way, with one battery. For "
            "the model: power from the battery in hover, out of ground effect, over that of steady "
            "driving on level ground, both with the base load ([Eq. 4.21](../model/04-rotors.md))."
        ),
        *_table(("vehicle", "time", "way"), rows),
        *_points(
            "**Fits in the trend:** driven wheels gain more time than rolling by rotors.",
            "**Does not fit:** the factors of the sets are several times those of any robot here. "
            "Real drives lose more ([above](#power-of-driving)).",
        ),
    ]


def _powers(name: str, speed: float) -> tuple[float, float]:
    """Return the powers from a vehicle's battery, W: in hover, and driving at a speed, m/s."""
    p = VehicleParameters.load(name)
    hover = p.rotors * p.torque_coefficient * p.hover_speed**3
    drag = p.linear_drag[0] * speed + 0.5 * AIR_DENSITY * p.drag_area[0] * speed**2
    drive = (p.rolling_resistance * p.mass * GRAVITY + drag) * speed
    return (
        hover / p.rotor_efficiency + p.avionics_power,
        drive / p.drive_efficiency + p.avionics_power,
    )
