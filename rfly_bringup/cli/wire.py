# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly send`, `listen`, `record`, `replay` and `dissector`.

They handle RflySim3D's datagrams, live and recorded.
"""

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from rfly_bringup.cli import options
from rfly_ue_bridge.codec.addresses import WINDOW_PORT


def send(
    command: Annotated[
        Optional[list[str]],  # noqa: UP045  typer 0.9 (Ubuntu 24.04) can't read `| None`
        typer.Argument(help="a console command of RflySim3D; in quotes where a number is negative"),
    ] = None,
    host: options.HostOption = "127.0.0.1",
    port: options.PortOption = WINDOW_PORT,
    window: options.WindowOption = -1,
    lan: Annotated[
        bool,
        typer.Option(
            "--lan",
            help="to every RflySim3D on the network (multicast 224.0.0.10:20009); no host or port",
        ),
    ] = False,
    file: Annotated[
        options.MaybePath,
        options.optional(
            "send the commands of this text file, one on each line; # begins a comment",
            metavar="SCRIPT",
        ),
    ] = None,
) -> None:
    """Send a console command to RflySim3D.

    UDP has no answer: the report says what was sent, and whether a port of this machine is closed.
    `rfly listen` shows what arrives.

    Examples:

        rfly send "RflyChangeMapbyName Grasslands"

        rfly send --window 0 "RflyCameraPosAng 0 0 -20 0 -45 0"

        rfly send --host 192.168.1.20 t.MaxFPS 30

        rfly send --lan RflyClearCapture

        rfly send --file scene.txt
    """
    from rfly_bringup.cli.wire_monitor import read_script, send_command, send_script

    if bool(command) == (file is not None):
        raise typer.BadParameter("expected either a command or --file SCRIPT")
    texts = [" ".join(command or ())] if file is None else read_script(file)
    for report in send_script(texts, lambda text: send_command(text, host, port, window, lan)):
        typer.echo(report)


def listen(
    port: options.PortOption = WINDOW_PORT,
    bind: options.BindOption = "127.0.0.1",
    count: Annotated[
        int, typer.Option(min=0, help="end after this number of datagrams; 0: at Ctrl-C")
    ] = 0,
    vehicle_id: Annotated[
        Optional[list[int]],  # noqa: UP045  typer 0.9 (Ubuntu 24.04) can't read `| None`
        typer.Option("--id", help="only this vehicle; may be repeated", show_default=False),
    ] = None,
    vehicle_type: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--type", help="only vehicles of this type, a name or number; repeatable"),
    ] = None,
    packet: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--packet", help="only packets of this name; may be repeated"),
    ] = None,
    summary: Annotated[
        Optional[bool],  # noqa: UP045
        typer.Option(
            "--summary/--each",
            help="a table that is kept up to date, or a line for each datagram (default: the "
            "table on a terminal, lines into a pipe or file)",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json",
            help="one JSON object a line, with every field in the wire's units",
        ),
    ] = False,
    all_windows: Annotated[
        bool,
        typer.Option("--all-windows", help="windows 0, 1 and 2: three consecutive ports"),
    ] = False,
) -> None:
    """Show the datagrams that RflySim3D would receive, with their content.

    On a terminal it shows the latest pose of each vehicle in a table.
    It listens in RflySim3D's place, so RflySim3D must not run on the same machine and port.

    Examples:

        rfly listen

        rfly listen --each --id 3 --id 4

        rfly listen --all-windows --count 100

        rfly listen --bind 0.0.0.0 --json > datagrams.jsonl
    """
    from rfly_bringup.cli.wire_monitor import monitor, packet_filter
    from rfly_common.config.vehicle_models import type_number

    if json and summary:
        raise typer.BadParameter("--json prints each datagram: --summary does not go with it")
    ports = range(port, port + 3) if all_windows else range(port, port + 1)
    monitor(
        bind,
        list(ports),
        count,
        packet_filter(
            vehicle_id or [], [type_number(each) for each in vehicle_type or []], packet or []
        ),
        as_json=json,
        as_summary=not json and (sys.stdout.isatty() if summary is None else summary),
    )


def record(
    ctx: typer.Context,
    out: Annotated[str, typer.Argument(metavar="OUT", help="file to write; - is standard output")],
    mcap: Annotated[
        bool,
        typer.Option("--mcap", help="record ROS topics to an MCAP file, not datagrams"),
    ] = False,
    recover: Annotated[
        options.MaybePath,
        options.optional(
            "record nothing: write what can be read of this MCAP file, whose recorder was killed, "
            "to OUT, with an index",
            metavar="CUT.mcap",
        ),
    ] = None,
    topic: options.TopicOption = None,
    exclude: options.ExcludeOption = None,
    port: options.PortOption = WINDOW_PORT,
    windows: Annotated[
        int, typer.Option(min=1, max=64, help="number of windows, on consecutive ports")
    ] = 3,
    bind: options.BindOption = "127.0.0.1",
    forward: Annotated[
        str,
        typer.Option(
            metavar="HOST[:PORT]",
            help="also send everything on to this window; PORT is that of its window 0, by default "
            "--port",
        ),
    ] = "",
    count: Annotated[
        int,
        typer.Option(min=0, help="end after this number of datagrams or messages; 0: no limit"),
    ] = 0,
    duration: Annotated[
        float, typer.Option(min=0, help="end after this time, s; 0: at Ctrl-C")
    ] = 0.0,
    max_size: Annotated[
        float,
        typer.Option(min=0, help="end before the file has this size, MB; 0: no limit"),
    ] = 4000.0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="replace a file that exists")
    ] = False,
) -> None:
    """Record the datagrams that RflySim3D would receive, as a pcap file.

    Wireshark, tcpdump and `rfly replay` read it. The recorder listens in RflySim3D's place; with
    --forward a window on another machine or port still receives everything.

    With --mcap it records what ROS nodes publish, for `ros2 bag play`, Foxglove, PlotJuggler and
    `rfly replay`.

    Examples:

        rfly record flight.pcap

        rfly record flight.pcap --forward 192.168.1.20

        rfly record replies.pcap --port 20006 --windows 1 --duration 60

        rfly record - | wireshark -k -i -

        rfly record --mcap flight.mcap

        rfly record --mcap poses.mcap --topic "/.*/pose" --topic "/tf.*"

        rfly record --recover flight.mcap whole.mcap
    """
    from rfly_bringup.topic_recording.topics import RecordLimits

    if recover is not None:
        options.refuse_options(ctx, "with --recover", _RECORD_OPTIONS)
        from rfly_bringup.cli.recording import recover_mcap

        recover_mcap(recover, out, overwrite=overwrite)
        return

    if mcap:
        options.refuse_options(ctx, "with --mcap", _DATAGRAM_OPTIONS)
    else:
        options.refuse_options(ctx, "without --mcap", _TOPIC_OPTIONS)
    limits = RecordLimits(count, duration, max_size * 1e6)
    ending = ".mcap" if mcap else ".pcap"
    hint = "" if mcap else "; --mcap records ROS topics"
    options.check_target(None if out == "-" else out, overwrite, ending, hint=hint)

    if mcap:
        if out == "-":
            raise typer.BadParameter(
                "-: an MCAP file ends with an index of itself, so it takes a name, not a pipe"
            )
        with options.needs_ros("recording topics"):
            from rfly_bringup.ros.topic_commands import record_topics

        record_topics(
            out,
            topic or (),
            exclude or (),
            limits,
            overwrite=overwrite,
        )
        return
    from rfly_bringup.cli.recording import record_to

    record_to(
        out,
        bind,
        range(port, port + windows),
        _host_and_port(forward, port),
        limits,
        overwrite=overwrite,
    )


_RECORD_OPTIONS = (
    "mcap",
    "topic",
    "exclude",
    "port",
    "windows",
    "bind",
    "forward",
    "count",
    "duration",
    "max_size",
)
_LAST_FLEET_ID = 2**16 - 1
"""Largest CopterID that a fleet packet holds."""
_TOPIC_OPTIONS = ("topic", "exclude", "remap")
_DATAGRAM_OPTIONS = ("port", "windows", "bind", "forward", "host", "ports")


def replay(
    ctx: typer.Context,
    recording: Annotated[
        Path,
        typer.Argument(
            metavar="IN",
            help="pcap or pcapng, of rfly, tcpdump or Wireshark; or a recording of ROS topics: "
            "MCAP, .db3, or the folder of ros2 bag record",
        ),
    ],
    speed: Annotated[
        float, typer.Option(min=0, help="factor on the speed; 0: without waiting")
    ] = 1.0,
    loop: Annotated[int, typer.Option(min=0, help="number of passes; 0: repeat until Ctrl-C")] = 1,
    pause: Annotated[
        float,
        typer.Option(min=0.001, help="time from the end of a pass to the next, s"),
    ] = 0.02,
    host: Annotated[
        str, typer.Option(help="machine to send to: name or IPv4 address")
    ] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="port for the first of --ports, the others follow; 0: unchanged",
        ),
    ] = 0,
    ports: Annotated[
        str,
        typer.Option(
            metavar="FIRST[-LAST]",
            help="UDP ports of the recording to send; by default all windows",
        ),
    ] = f"{WINDOW_PORT}-{WINDOW_PORT + 63}",
    topic: options.TopicOption = None,
    exclude: options.ExcludeOption = None,
    remap: Annotated[
        options.MaybeTexts,
        typer.Option(metavar="OLD:=NEW", help="publish a ROS topic under another name; repeatable"),
    ] = None,
    vehicle_id: Annotated[
        options.MaybeTexts,
        typer.Option(
            "--id", metavar="OLD:=NEW", help="give a vehicle (CopterID) another id; repeatable"
        ),
    ] = None,
) -> None:
    """Send a recording again, each datagram at its time, to RflySim3D or another program.

    The messages of `rfly record --mcap` or `ros2 bag record` are published on their topics.

    Window numbers stay: the third of --ports goes to the third port from --port up. The addresses
    in the recording have no effect: without --host everything goes to this machine.

    Examples:

        rfly replay flight.pcap

        rfly replay flight.pcap --speed 0.25 --loop 0

        rfly replay flight.pcap --host 192.168.1.20

        rfly replay replies.pcap --ports 20006

        rfly replay flight.mcap --topic /vehicle_states

        rfly replay rosbag2_2026_11_28 --remap /vehicle_states:=/ghosts --id 1:=101
    """
    from rfly_bringup.cli.recording import play_from, replay_from
    from rfly_bringup.topic_recording.topics import IdMap, TopicChoice, renamings
    from rfly_common.untrusted_files.bag_reader import is_bag
    from rfly_ue_bridge.datagram_recording.replay import Target

    is_of_topics = is_bag(recording)
    options.refuse_options(
        ctx,
        f"for {recording}, a recording of {'topics' if is_of_topics else 'datagrams'},",
        _DATAGRAM_OPTIONS if is_of_topics else _TOPIC_OPTIONS,
    )

    if is_of_topics:
        play_from(
            recording,
            TopicChoice(topic or (), exclude or ()),
            {_topic_name(k): _topic_name(v) for k, v in renamings("--remap", remap or ()).items()},
            IdMap(vehicle_id or ()),
            speed=speed,
            passes=loop,
            pause_s=pause,
        )
        return

    target = Target(_port_range(ports), host, port or None)
    ids = IdMap(vehicle_id or (), most=_LAST_FLEET_ID)
    replay_from(recording, target, ids, speed=speed, passes=loop, pause_s=pause)


def _topic_name(name: str) -> str:
    return name if name.startswith("/") else f"/{name}"


def dissector(
    out: Annotated[
        options.MaybePath,
        options.optional("file to write; without it, standard output"),
    ] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Write a plugin for Wireshark that shows RflySim3D's packets with their fields.

    Examples:

        rfly dissector --out rflysim3d.lua

        wireshark -X lua_script:rflysim3d.lua flight.pcap

        tshark -X lua_script:rflysim3d.lua -r flight.pcap -Y "rflysim.copterID == 7"
    """
    from rfly_common.files import write_text
    from rfly_ue_bridge.codec import wireshark_dissector

    if out is None:
        typer.echo(wireshark_dissector.dissector(), nl=False)
    else:
        options.check_target(out, overwrite, ".lua")
        write_text(out, wireshark_dissector.dissector())


def _host_and_port(text: str, default: int) -> tuple[str, int] | None:
    """Return the host and port of --forward, None without it. Raise BadParameter."""
    if not text:
        return None

    host, colon, port = text.partition(":")
    if not host or (colon and not (port.isdecimal() and 1 <= int(port) <= 65535)):
        raise typer.BadParameter(
            f"--forward {text!r}: expected HOST or HOST:PORT, as in 192.168.1.20:20010"
        )
    return host, int(port) if colon else default


def _port_range(text: str) -> range:
    """Return the ports of --ports. Raise BadParameter."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or (dash and not last.isdecimal()):
        raise typer.BadParameter(
            f"--ports {text!r}: expected FIRST or FIRST-LAST, as in 20010-20012"
        )
    return range(int(first), int(last if dash else first) + 1)
