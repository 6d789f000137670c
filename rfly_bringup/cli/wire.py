"""`rfly send` and `rfly listen`: RflySim3D's datagrams by hand, without ROS."""

from typing import Annotated

import typer

from rfly_bringup.cli.options import BindOption, HostOption, PortOption, WindowOption
from rfly_ue_bridge.codec.addresses import WINDOW_PORT


def send(
    command: Annotated[
        list[str], typer.Argument(help="a console command of RflySim3D; in quotes where a number is negative")
    ],
    host: HostOption = "127.0.0.1",
    port: PortOption = WINDOW_PORT,
    window: WindowOption = -1,
    lan: Annotated[
        bool,
        typer.Option("--lan", help="to every RflySim3D of the network (multicast 224.0.0.10:20009); no host or port"),
    ] = False,
) -> None:
    """Send a console command to RflySim3D.

    UDP has no answer: what is reported is what was sent, and, on this machine, where nobody listens. `rfly listen`
    shows what arrives.

    Examples:

        rfly send "RflyChangeMapbyName Grasslands"

        rfly send --window 0 "RflyCameraPosAng 0 0 -20 0 -45 0"

        rfly send --host 192.168.1.20 t.MaxFPS 30

        rfly send --lan RflyClearCapture
    """
    from rfly_bringup.cli.wire_monitor import send_command

    typer.echo(send_command(" ".join(command), host, port, window, lan))


def listen(
    port: PortOption = WINDOW_PORT,
    bind: BindOption = "127.0.0.1",
    count: Annotated[int, typer.Option(min=0, help="end after so many datagrams; 0: at Ctrl-C")] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="one JSON object a line, with every field in the wire's units")
    ] = False,
    all_windows: Annotated[
        bool, typer.Option("--all-windows", help="windows 0, 1 and 2: three consecutive ports")
    ] = False,
) -> None:
    """Show the datagrams that RflySim3D would get: is anything arriving, and what does it say?

    It takes RflySim3D's place, so RflySim3D must not run on the same machine and port meanwhile.

    Examples:

        rfly listen

        rfly listen --all-windows --count 100

        rfly listen --bind 0.0.0.0 --json > datagrams.jsonl
    """
    from rfly_bringup.cli.wire_monitor import monitor

    ports = range(port, port + 3) if all_windows else range(port, port + 1)
    monitor(bind, list(ports), count, as_json=json)
