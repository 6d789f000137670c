# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly view`: a browser viewer of RflySim3D's datagrams."""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rfly_bringup.cli import options
from rfly_bringup.cli.world import WorldOption, read_world
from rfly_bringup.terminal import printable, progress_bar
from rfly_common.errors import ConfigError
from rfly_common.imports import require
from rfly_common.sockets.udp_sockets import ipv4
from rfly_ue_bridge.codec.addresses import FEEDBACK_PORT, WINDOW_PORT

if TYPE_CHECKING:
    from rfly_common.untrusted_files.reader_errors import LeftOut
    from rfly_terrain.world.world import World
    from rfly_ue_bridge.datagram_recording.recorded_states import WindowRecording
    from rfly_viewer.window.server import SensorAnswering, Settings

_FILMS = (".webp", ".gif")
_FOXGLOVE_PORT = 8765
_TOPIC_OPTIONS = ("topic", "exclude")
_FOXGLOVE_OPTIONS = (*_TOPIC_OPTIONS, "foxglove", "host", "port")


@dataclass(frozen=True)
class ViewOptions:
    """Arguments and options of `rfly view`."""

    recording: Annotated[
        options.MaybePath,
        typer.Argument(
            metavar="[RECORDING]",
            help="show this instead of what arrives: pcap, or a recording of vehicle_states, as of "
            "rfly sim run --mcap",
            show_default=False,
        ),
    ] = None
    map: Annotated[
        options.MaybeText,
        options.optional(
            "name or path of the map; '' for flat ground (default: the recording's, the world's, "
            f"else {options.DEMO_MAP})",
            "--map",
            "-m",
            metavar="MAP",
        ),
    ] = None
    world: WorldOption = None
    imagery: options.ImageryOption = None
    search_path: options.SearchPath = None
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="port of the web page; for Foxglove 8765 by default; 0: any free one",
        ),
    ] = 8080
    udp_port: options.PortOption = WINDOW_PORT
    window: Annotated[
        int,
        typer.Option(
            min=0,
            help="number of this window, from 0; each window listens one UDP port higher",
        ),
    ] = 0
    host: Annotated[
        str,
        typer.Option(
            help="address to listen on, for UDP and web page; 0.0.0.0: open to other machines"
        ),
    ] = "127.0.0.1"
    lan_interface: Annotated[
        str,
        typer.Option(
            help="this machine's IPv4 address, to receive LAN commands too (multicast "
            "224.0.0.10:20009)"
        ),
    ] = ""
    feedback_host: Annotated[str, typer.Option(help="host that receives answers and contacts")] = (
        "127.0.0.1"
    )
    feedback_port: Annotated[
        int, typer.Option(min=1, max=65535, help="UDP port of answers and contacts")
    ] = FEEDBACK_PORT
    scan_folder: Annotated[
        options.MaybePath,
        options.optional("existing folder that RflyScanTerrainH may write png and txt into"),
    ] = None
    max_triangles: Annotated[
        int, typer.Option(min=2, max=4_000_000, help="most triangles of the terrain")
    ] = 400_000
    shadows: Annotated[
        bool,
        typer.Option(help="vehicles cast shadows; off is faster without a graphics card"),
    ] = True
    sensors: Annotated[
        bool,
        typer.Option(help="answer requests for cameras and lidars of the vehicles"),
    ] = True
    sensors_to: Annotated[
        options.MaybeTexts,
        options.optional(
            "IPv4 address of another machine that may request them and receive their data",
            metavar="ADDRESS",
        ),
    ] = None
    viewshed: Annotated[
        options.Pair,
        typer.Option(
            metavar="X Y",
            show_default=False,
            help="tint the ground that an antenna has in sight, 2 m above this place, x east and y "
            "north, m; a double click moves it",
        ),
    ] = options.NO_PAIR
    follow: Annotated[
        options.MaybeText,
        options.optional(
            "follow this vehicle once it appears, or the middle of all vehicles",
            metavar="ID|all",
        ),
    ] = None
    enlarge: Annotated[
        int, typer.Option(min=1, max=30, help="magnification of vehicles; the page can change it")
    ] = 1
    vehicle_xml: Annotated[
        options.MaybePath,
        options.optional(
            "vehicle XML of RflySim3D, a file or a folder: centre heights, scales and names of "
            "types",
            metavar="PATH",
        ),
    ] = None
    speed: Annotated[
        float,
        typer.Option(min=0.01, max=1000.0, help="factor on the speed of the recording"),
    ] = 1.0
    film: Annotated[
        options.MaybePath,
        options.file_option(
            "write the recording as an animation, .webp or .gif, by a Chromium without a window, "
            "and end"
        ),
    ] = None
    overwrite: options.Overwrite = False
    foxglove: Annotated[
        bool,
        typer.Option(
            "--foxglove",
            help="serve ROS topics to Foxglove by WebSocket, in place of the web page",
        ),
    ] = False
    topic: options.TopicOption = None
    exclude: options.ExcludeOption = None
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="open the page in the browser")
    ] = False


@options.takes(ViewOptions)
def view(ctx: typer.Context, given: ViewOptions) -> None:
    """Show in a browser what RflySim3D would show, from the same datagrams.

    It listens on RflySim3D's ports, so RflySim3D must not run on the same machine and port.

    Examples:

        rfly view                                   then, in another shell: rfly up

        rfly view --map ./map/MyTerrain.png --open

        rfly view --world village                   and rfly up --world village

        rfly view --map Alps --imagery photo.tif    an orthophoto on the ground

        rfly view --viewshed 100 -250               what an antenna there has in sight

        rfly view --follow all                      the camera goes with the fleet

        rfly view --window 1 --port 8081            a second window

        rfly view valley.mcap --follow 601          a recording, as of rfly sim run --mcap

        rfly view valley.mcap --follow 601 --speed 8 --film valley.webp

        rfly view --foxglove                        ROS topics at ws://127.0.0.1:8765
    """
    if given.foxglove:
        meaningless = [name for name in ctx.params if name not in _FOXGLOVE_OPTIONS]
        options.refuse_options(ctx, "with --foxglove", meaningless)
    else:
        options.refuse_options(ctx, "without --foxglove", _TOPIC_OPTIONS)

    if given.foxglove:
        is_given = options.on_command_line(ctx, "port")
        _serve_foxglove(
            given.host,
            given.port if is_given else _FOXGLOVE_PORT,
            given.topic or (),
            given.exclude or (),
        )
        return

    if given.recording is None:
        options.refuse_options(ctx, "without a recording", ("speed", "film"))
    _check(given)

    from rfly_ue_bridge.datagram_recording.recorded_states import open_for_window
    from rfly_viewer.window.server import view as run
    from rfly_viewer.wire.listener import Playback

    with ExitStack() as closing:
        shown = None
        if given.recording is not None:
            port = given.udp_port + given.window
            shown = closing.enter_context(open_for_window(given.recording, port))
        settings = _settings(given, None if shown is None else shown.map)

        if shown is not None:
            closing.callback(_say_left_out, str(given.recording), shown.left_out)
        if given.film is not None and shown is not None:
            _make_film(given, settings, shown)
            return
        playback = None
        if shown is not None:
            playback = Playback(
                str(given.recording), shown.datagrams(), time.monotonic, given.speed
            )
        run(settings, typer.echo, given.open_browser, playback)


def _say_left_out(recording: str, left_out: "LeftOut") -> None:
    """Print what a recording holds that the window could not show."""
    text = left_out.text()
    if text:
        print(f"rfly: {recording}: {printable(text)}", file=sys.stderr)


def _check(given: ViewOptions) -> None:
    """Raise ConfigError for options that no window can have."""
    film = given.film
    if film is not None:
        options.check_target(film, given.overwrite)
        if film.suffix.lower() not in _FILMS:
            raise ConfigError(f"--film {film}: expected a name that ends in {' or '.join(_FILMS)}")
    require("viser", "rfly view")

    port = given.udp_port + given.window
    if port > 65535:
        raise ConfigError(
            f"--udp-port {given.udp_port} --window {given.window}: there is no UDP port {port}"
        )
    if given.scan_folder is not None and not given.scan_folder.is_dir():
        raise ConfigError(f"--scan-folder {given.scan_folder}: no such folder")


def _settings(given: ViewOptions, recorded: str | None) -> "Settings":
    """Return the settings of the window; `recorded`: the map that a recording names."""
    from rfly_collision.shapes.vehicle_descriptions import NONE, read_vehicle_descriptions
    from rfly_viewer.window.server import Settings

    descriptions = NONE
    if given.vehicle_xml is not None:
        descriptions = read_vehicle_descriptions(given.vehicle_xml)
    answers = _answers(given.sensors_to or ()) if given.sensors else None
    placed, folders = read_world(given.world, given.search_path)
    maps = (given.map, placed.map or None, recorded, options.DEMO_MAP)

    return Settings(
        map=next(name for name in maps if name is not None),
        search_path=tuple(folders),
        world=placed,
        imagery=given.imagery,
        host=given.host,
        http_port=given.port,
        udp_port=given.udp_port + given.window,
        lan_interface=given.lan_interface,
        feedback_host=given.feedback_host,
        feedback_port=given.feedback_port,
        scan_folder=given.scan_folder,
        max_triangles=given.max_triangles,
        shadows=given.shadows,
        sight_from=options.given(given.viewshed, "--viewshed"),
        follow=_followed(given.follow),
        enlarge=given.enlarge,
        sensors=answers,
        descriptions=descriptions,
    )


def _make_film(given: ViewOptions, settings: "Settings", shown: "WindowRecording") -> None:
    """Write a recording as an animation."""
    from rfly_viewer.window.film import frames_of, make_film

    assert given.film is not None
    times = [datagram.time for datagram in shown.datagrams()]
    if not times:
        raise ConfigError(f"{given.recording}: nothing that a window shows on its UDP port")
    frames = frames_of(times[-1] - times[0], given.speed)
    with progress_bar(f"{given.film}, {frames} frames", says=True) as bar:
        make_film(settings, shown.datagrams(), frames, given.speed, given.film, bar)
    print(given.film)


def _answers(allowed: Sequence[str]) -> "Callable[[World], SensorAnswering]":
    """Return the maker of the answers for `Settings`. Raises ConfigError for a bad address."""
    addresses = [ipv4(address, "--sensors-to") for address in allowed]

    def make(world: "World") -> "SensorAnswering":
        # these imports take a second
        from rfly_viewer.window_sensors.sensor_answers import SensorAnswers

        return SensorAnswers(world, addresses)

    return make


def _followed(text: str | None) -> int | None:
    """Return the id in the option --follow, or ALL_VEHICLES. Raise ConfigError."""
    from rfly_viewer.scene.viewpoint import ALL_VEHICLES

    if text is None or text == "all":
        return None if text is None else ALL_VEHICLES
    if not text.isdecimal():
        raise ConfigError(f"--follow {text}: expected the id of a vehicle, or all")
    return int(text)


def _serve_foxglove(host: str, port: int, topics: Sequence[str], exclude: Sequence[str]) -> None:
    """Serve ROS topics to Foxglove until Ctrl-C."""
    from rfly_bringup.runner.supervisor import installed
    from rfly_bringup.topic_recording.topics import TopicChoice

    with options.needs_ros("rfly view --foxglove"):
        from rfly_bringup.ros.topic_commands import serve_foxglove

    layout = installed(Path("share") / "rfly_suite" / "config" / "foxglove.json")
    connect = "Foxglove: open a connection, Foxglove WebSocket,"
    rest = f"import the layout {layout}; Ctrl-C ends"
    serve_foxglove(
        host,
        port,
        TopicChoice(topics, exclude),
        lambda address: typer.echo(f"{connect} {address}; {rest}"),
    )
