# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly objects`: objects on the ground of RflySim3D's scene.

They are given singly or by a list. Model offsets belong here too.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Optional

import typer

from rfly_bringup.cli import options
from rfly_ue_bridge.codec.addresses import WINDOW_PORT

MAX_BESIDE_M = 1.0
"""Largest distance of a click point from the model, m; farther points say little of its ground."""

MaybeFrame = Optional[options.MapFrame]  # noqa: UP045

objects_app = typer.Typer(
    help="Objects on the ground of RflySim3D's scene: targets, people, obstacles.\n\n"
    "`place` and `fit` need no ROS. `move`, `remove`, `list` and `place --bridge` ask a running "
    "ue_bridge_node, which remembers its objects.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

_NEGATIVE = {"ignore_unknown_options": True}  # -3.5 is a number

Namespace = Annotated[str, typer.Option(help="namespace of the ue_bridge_node")]
YawDeg = Annotated[
    float,
    typer.Option(
        help="heading, degrees: counter-clockwise from east in map, clockwise from north in map_ned"
    ),
]


@dataclass(frozen=True)
class PlaceOptions:
    """Arguments and options of `rfly objects place`."""

    vehicle_type: Annotated[
        options.MaybeText,
        typer.Argument(metavar="TYPE", help="the model: its name, e.g. person, or its number, 30"),
    ] = None
    x: options.MaybeX = None
    y: options.MaybeY = None
    file: Annotated[
        options.MaybeText,
        options.optional(
            "instead: a YAML or CSV list, or a shipped one's name",
            "--file",
            "-f",
            metavar="LIST",
        ),
    ] = None
    object_id: Annotated[
        int, typer.Option("--id", min=0, help="CopterID; 0: the next free id from 1001 up")
    ] = 0
    yaw_deg: YawDeg = 0.0
    offset: Annotated[
        float,
        typer.Option(
            help="height of the model's origin above the ground, m; see `rfly objects fit`"
        ),
    ] = 0.0
    z: Annotated[
        options.MaybeFloat,
        options.optional(
            "height of the origin in place of the terrain's, m (up in map, down in map_ned)"
        ),
    ] = None
    scale: Annotated[
        float, typer.Option(min=0.001, max=1000.0, help="factor on the model's size")
    ] = 1.0
    ground: Annotated[
        bool,
        typer.Option(
            "--ground",
            help="RflySim3D finds the ground itself, as with sendUE4Pos2Ground",
        ),
    ] = False
    frame: Annotated[
        MaybeFrame,
        options.optional(
            "map: x east, y north, z up (default); map_ned: x north, y east, z down; a YAML list "
            "names its own"
        ),
    ] = None
    map_name: Annotated[
        options.MaybeText,
        options.optional(
            f"the terrain: name or path of a map [default: {options.DEMO_MAP}]",
            "--map",
            "-m",
            metavar="MAP",
        ),
    ] = None
    search_path: options.SearchPath = None
    host: options.HostOption = "127.0.0.1"
    port: options.PortOption = WINDOW_PORT
    window: options.WindowOption = -1
    bridge: Annotated[
        bool,
        typer.Option(
            "--bridge",
            help="place with the running ue_bridge_node, on its terrain; it remembers the objects",
        ),
    ] = False
    namespace: Namespace = ""


@objects_app.command(context_settings=_NEGATIVE)
@options.takes(PlaceOptions)
def place(given: PlaceOptions) -> None:
    """Place one object, or a list, on the terrain: at its altitude plus the model's offset.

    Without --bridge the datagrams are sent once and nothing remembers the objects. To move one,
    place it again with its --id.

    Examples:

        rfly objects place person -16.5 1.45 --yaw-deg 180

        rfly objects place 151 120 -35.5 --id 1003 --offset 0.8 --map JacksboroFault

        rfly objects place --file grasslands_targets

        rfly objects place --file my_targets.csv --frame map_ned --bridge
    """
    from rfly_bringup.cli.object_sender import one_object, send_objects
    from rfly_common.config.vehicle_models import type_number
    from rfly_ue_bridge.objects.placement_file import load_placements

    frame_name = "" if given.frame is None else given.frame.value
    if given.file is not None:
        if given.vehicle_type is not None:
            raise typer.BadParameter("give TYPE X Y or --file LIST, not both")
        objects = load_placements(given.file, frame_name)
    else:
        if given.vehicle_type is None or given.x is None or given.y is None:
            raise typer.BadParameter("give TYPE X Y, or --file LIST")
        factors = (given.scale, given.scale, given.scale)
        objects = [
            one_object(
                type_number(given.vehicle_type),
                given.x,
                given.y,
                math.radians(given.yaw_deg),
                given.z,
                frame_name,
                given.object_id,
                given.offset,
                given.ground,
                factors,
            )
        ]

    if given.bridge:
        if given.map_name is not None:
            raise typer.BadParameter("--map: with --bridge the terrain is that of terrain_map")
        with _bridge(given.namespace) as client:
            client.place(objects)
        return

    send_objects(
        objects,
        options.DEMO_MAP if given.map_name is None else given.map_name,
        given.search_path or (),
        given.host,
        given.port,
        given.window,
    )


@objects_app.command()
def fit(
    click: Annotated[
        options.Triple,
        typer.Option(
            "--click",
            metavar="X Y Z",
            help="click point: the ground at the model's foot, m NED",
        ),
    ],
    object_pos: Annotated[
        options.Triple,
        typer.Option("--object", metavar="X Y Z", help="object pos: the model's origin, m NED"),
    ],
    xml: Annotated[
        options.MaybePath,
        options.file_option("XML of the model: corrects its CenterHeightAboveGroundCm"),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="show what would change in the XML, write nothing"),
    ] = False,
) -> None:
    """Compute a model's offset from the two points of a double click, and correct its XML.

    RflySim3D prints both points. The XML keeps its comments, layout and encoding; a copy of the old
    file stays in its folder (NAME.xml.bak).

    Examples:

        rfly objects fit --click 43.943 1.620 -10.465 --object 43.943 1.620 -11.465

        rfly objects fit --click 0 0 -8 --object 0 0 -8.9 --xml Target.xml --dry-run
    """
    from rfly_collision.shapes.vehicle_xml import ELEMENT, correct_center_height
    from rfly_ue_bridge.objects.placement import measure_offset

    if dry_run and xml is None:
        raise typer.BadParameter("--dry-run: shows what would change in --xml FILE")
    try:
        offset = measure_offset(click, object_pos)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None

    print(
        f"offset  {offset.height:.4g} m: the model's origin "
        f"{'above' if offset.height >= 0 else 'below'} the ground"
    )
    print(f"{ELEMENT}  {offset.height_cm:.6g}")
    if offset.distance > MAX_BESIDE_M:
        typer.echo(
            f"note: the click point lies {offset.distance:.2f} m to the side of the object; on a "
            "slope click nearer",
            err=True,
        )

    if xml is None:
        return
    correction = correct_center_height(xml, offset.height_cm, dry_run=dry_run)
    old = "nothing" if correction.old_cm is None else f"{correction.old_cm:g}"
    if not correction.diff:
        print(f"{xml}: says {old} already, nothing to correct")
    elif dry_run:
        print(correction.diff)
    else:
        print(
            f"{xml}: {old} corrected to {correction.new_cm:g}; the old file is {correction.backup}"
        )


@objects_app.command(context_settings=_NEGATIVE)
def move(
    object_id: Annotated[int, typer.Argument(metavar="ID", min=1)],
    x: options.X,
    y: options.Y,
    yaw_deg: YawDeg = 0.0,
    frame: Annotated[
        options.MapFrame,
        typer.Option(help="map: x east, y north; map_ned: x north, y east"),
    ] = options.MapFrame.map,
    namespace: Namespace = "",
) -> None:
    """Move an object that the running ue_bridge_node has placed, on the terrain.

    Examples:

        rfly objects move 1001 15 -20.5 --yaw-deg 90
    """
    with _bridge(namespace) as client:
        client.move(object_id, x, y, math.radians(yaw_deg), frame.value)


@objects_app.command()
def remove(
    object_ids: Annotated[list[int], typer.Argument(metavar="ID...", min=1)],
    namespace: Namespace = "",
) -> None:
    """Remove objects that the running ue_bridge_node has placed.

    No packet deletes a model of RflySim3D. The bridge sends it 1000 m below its place, and then
    stops sending it.

    Examples:

        rfly objects remove 1001 1002
    """
    with _bridge(namespace) as client:
        for object_id in object_ids:
            client.remove(object_id)


@objects_app.command("list")
def list_(
    as_json: Annotated[
        bool, typer.Option("--json", help="for programs: one JSON object a line")
    ] = False,
    namespace: Namespace = "",
) -> None:
    """Show the objects that the running ue_bridge_node has placed.

    Examples:

        rfly objects list

        rfly objects list --json
    """
    with _bridge(namespace) as client:
        client.list(as_json)


def _bridge(namespace: str):  # type: ignore[no-untyped-def]  # the class is of a module that imports ROS
    """Return a client of the running ue_bridge_node."""
    with options.needs_ros(
        "asking a running ue_bridge_node (unlike `rfly objects place` without --bridge)"
    ):
        from rfly_bringup.ros.bridge_client import BridgeClient
    return BridgeClient(namespace)
