# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sensors`: what RflySim3D's cameras and lidars send."""

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from rfly_bringup.cli import options
from rfly_ue_bridge.codec.addresses import WINDOW_PORT

sensors_app = typer.Typer(
    help="RflySim3D's cameras and lidars, without ROS; `ue_sensors_node` publishes them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


class RequestBytes(str, Enum):
    """Bytes of a request."""

    current = "144"
    old = "92"
    new = "148"


@sensors_app.callback()
def sensors() -> None:
    """Keep `listen` a command of its own."""


@sensors_app.command()
def listen(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="RflySim's Config.json with the sensors")
    ],
    host: options.HostOption = "127.0.0.1",
    port: options.PortOption = WINDOW_PORT,
    window: Annotated[
        int, typer.Option(min=0, max=63, help="window whose process renders the sensors")
    ] = 0,
    layout: Annotated[
        RequestBytes,
        typer.Option(help="bytes of a request: 92 for windows before 2023, 148 for new ones"),
    ] = RequestBytes.current,
    bind: options.BindOption = "127.0.0.1",
    request: Annotated[
        bool,
        typer.Option(
            "--request/--no-request",
            help="request the sensors, again while they are silent, or only listen",
        ),
    ] = True,
    count: Annotated[
        int, typer.Option(min=0, help="end after this number of frames; 0: no limit")
    ] = 0,
    duration: Annotated[
        float, typer.Option(min=0, help="end after this time, s; 0: at Ctrl-C")
    ] = 0.0,
    save: Annotated[
        options.MaybePath,
        options.optional(
            "folder for the frames: pictures as they came, clouds and the rest as .npy",
            metavar="DIR",
        ),
    ] = None,
    mcap: Annotated[
        options.MaybePath,
        options.optional(
            "new MCAP file for pictures, clouds and distances, with the topics of ue_sensors_node",
            metavar="FILE.mcap",
        ),
    ] = None,
) -> None:
    """Request the sensors of a Config.json and show what arrives: rate, size and losses.

    The exit code is 1 if one of the sensors has sent nothing.

    Examples:

        rfly sensors listen Config.json

        rfly sensors listen Config.json --host 192.168.1.20 --bind 0.0.0.0

        rfly sensors listen Config.json --count 10 --save pictures

        rfly sensors listen Config.json --mcap flight.mcap
    """
    from rfly_bringup.cli.sensor_monitor import SensorMonitor
    from rfly_ue_bridge.codec.sensor_requests import RequestLayout

    monitor = SensorMonitor(
        config, host, port + window, bind, RequestLayout(int(layout.value)), save, mcap
    )
    if not monitor.run(request=request, count=count, duration_s=duration):
        raise typer.Exit(1)
