# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sim fault`: break and mend parts of a running land-air vehicle."""

from typing import Annotated

import typer

from rfly_bringup.cli import options
from rfly_bringup.terminal import printable


def fault(
    part: Annotated[
        str,
        typer.Argument(
            metavar="PART",
            help="a sensor, such as gps; rotor_1 …, drive_fl …, brake_fl … or steering",
        ),
    ],
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="off, stuck, biased, noisy, slow, delayed, intermittent, wrong, partial; mend "
            "ends the part's faults",
        ),
    ],
    value: Annotated[
        str,
        typer.Option(metavar="N[,N…]", help="in SI units, one number or one for each component"),
    ] = "",
    quantity: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="reading that is biased, noisy or wrong, such as rates (default: the first)",
        ),
    ] = "",
    duration: Annotated[
        float,
        typer.Option(min=0.0, metavar="S", help="simulation time; 0: until it is mended"),
    ] = 0.0,
    namespace: Annotated[
        str, typer.Option(help="namespace of amphibious_sim_node")
    ] = "amphibious_1",
) -> None:
    """Break a part of the vehicle that runs under `rfly up amphibious`, or mend it.

    Examples:

        rfly sim fault gps biased --value 3,-2,0 --duration 20

        rfly sim fault rotor_2 partial --value 0.7

        rfly sim fault rotor_2 mend
    """
    try:
        numbers = [float(number) for number in value.split(",")] if value else []
    except ValueError:
        raise typer.BadParameter(f"--value {value}: expected numbers, such as 3,-2,0") from None

    with options.needs_ros("asking a running amphibious_sim_node"):
        from rfly_bringup.cli.ros.fault_client import FaultClient

    with FaultClient(namespace) as client:
        client.inject(part, kind, quantity, numbers, duration)
    print(printable(f"{part}: {'mended' if kind == 'mend' else kind}"))
