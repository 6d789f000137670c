# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly drive`: keyboard teleoperation of a land-air vehicle."""

from typing import Annotated

import typer

from rfly_bringup.cli.options import needs_ros

DRIVE_SPEED = 3.0
FLY_SPEED = 3.0
CLIMB_SPEED = 1.0
CURVATURE = 0.6
YAW_RATE_DEG = 45.0


def drive(
    vehicle: Annotated[
        str,
        typer.Argument(metavar="VEHICLE", help="name of the vehicle, the namespace of its topics"),
    ] = "amphibious_1",
    drive_speed: Annotated[
        float, typer.Option(min=0.1, max=50.0, help="fastest drive, m/s")
    ] = DRIVE_SPEED,
    fly_speed: Annotated[
        float, typer.Option(min=0.1, max=50.0, help="fastest flight, m/s")
    ] = FLY_SPEED,
    climb_speed: Annotated[
        float, typer.Option(min=0.1, max=10.0, help="fastest climb and descent, m/s")
    ] = CLIMB_SPEED,
    curvature: Annotated[
        float, typer.Option(min=0.01, max=5.0, help="sharpest bend that is driven, 1/m")
    ] = CURVATURE,
    yaw_rate: Annotated[
        float, typer.Option(min=1.0, max=180.0, help="fastest turn in flight, degrees/s")
    ] = YAW_RATE_DEG,
    stamped: Annotated[
        bool,
        typer.Option("--stamped/--unstamped", help="publish cmd_vel as TwistStamped or as Twist"),
    ] = True,
) -> None:
    """Drive and fly a land-air vehicle with the keyboard.

    The vehicle's nodes must run. For a joystick use teleop_node.

    Examples:

        rfly drive

        rfly drive amphibious_2 --drive-speed 5
    """
    import math

    from rfly_autonomy.control.teleop import TeleopLimits

    with needs_ros("driving a running vehicle from a Linux terminal"):
        from rfly_bringup.ros.keyboard_teleop import drive as run
    run(
        vehicle,
        TeleopLimits(drive_speed, curvature, fly_speed, climb_speed, math.radians(yaw_rate)),
        stamped,
    )
