"""`rfly objects`: objects on the ground of RflySim3D's scene, singly or from a list, and model
offsets.
"""

import math
from typing import Annotated, Optional

import typer

from rfly_bringup.cli import options
from rfly_ue_bridge.codec.addresses import WINDOW_PORT

MAX_BESIDE_M = 1.0
"""a click point farther beside the model than this says little of the ground beneath it"""

MaybeFrame = Optional[options.MapFrame]  # noqa: UP045

objects_app = typer.Typer(
    help="Objects on the ground of RflySim3D's scene: targets, people, obstacles.\n\n"
    "`place` and `fit` need no ROS. `move`, `remove`, `list` and `place --bridge` ask a running "
    "ue_bridge_node, which "
    "keeps what it has placed.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

_NEGATIVE = {"ignore_unknown_options": True}  # so that -3.5 is a number

Namespace = Annotated[str, typer.Option(help="namespace of the ue_bridge_node")]
YawDeg = Annotated[
    float,
    typer.Option(
        help="heading, degrees: counter-clockwise from east in map, clockwise from north in map_ned"
    ),
]


@objects_app.command(context_settings=_NEGATIVE)
def place(
    vehicle_type: Annotated[
        options.MaybeInt,
        typer.Argument(metavar="TYPE", min=0, help="RflySim3D's ClassID, e.g. 30 a person"),
    ] = None,
    x: options.MaybeX = None,
    y: options.MaybeY = None,
    file: Annotated[
        options.MaybeText,
        options.optional(
            "instead: a YAML or CSV list, or a shipped one's name",
            "--file",
            "-f",
            metavar="LIST",
        ),
    ] = None,
    object_id: Annotated[
        int, typer.Option("--id", min=0, help="CopterID; 0: from 1001 on, in order")
    ] = 0,
    yaw_deg: YawDeg = 0.0,
    offset: Annotated[
        float,
        typer.Option(help="m, the model's origin above the ground; `rfly objects fit` finds it"),
    ] = 0.0,
    z: Annotated[
        options.MaybeFloat,
        options.optional(
            "m, the origin's own height (up in map, down in map_ned), not the terrain's"
        ),
    ] = None,
    scale: Annotated[
        float, typer.Option(min=0.001, max=1000.0, help="factor on the model's size")
    ] = 1.0,
    ground: Annotated[
        bool,
        typer.Option(
            "--ground",
            help="RflySim3D looks for the ground itself, as sendUE4Pos2Ground",
        ),
    ] = False,
    frame: Annotated[
        MaybeFrame,
        options.optional(
            "map: x east, y north, z up (default); map_ned: x north, y east, z down; a YAML list "
            "says so"
        ),
    ] = None,
    map_name: Annotated[
        options.MaybeText,
        options.optional(
            f"the terrain: name or path of a map [default: {options.DEMO_MAP}]",
            "--map",
            "-m",
            metavar="MAP",
        ),
    ] = None,
    search_path: options.SearchPath = None,
    host: options.HostOption = "127.0.0.1",
    port: options.PortOption = WINDOW_PORT,
    window: options.WindowOption = -1,
    bridge: Annotated[
        bool,
        typer.Option(
            "--bridge",
            help="let the running ue_bridge_node do it, on its terrain, and keep them",
        ),
    ] = False,
    namespace: Namespace = "",
) -> None:
    """Place one object, or a whole list, on the terrain: at its altitude plus the model's offset.

    Without --bridge the datagrams leave at once and nothing remembers them: to move one, place it
    again with its --id.

    Examples:

        rfly objects place 30 -16.5 1.45 --yaw-deg 180

        rfly objects place 151 120 -35.5 --id 1003 --offset 0.8 --map JacksboroFault

        rfly objects place --file grasslands_targets

        rfly objects place --file my_targets.csv --frame map_ned --bridge
    """
    from rfly_bringup.cli.object_sender import one_object, send_objects
    from rfly_ue_bridge.objects.placement_file import load_placements

    frame_name = "" if frame is None else frame.value
    if file is not None:
        if vehicle_type is not None:
            raise typer.BadParameter("give TYPE X Y or --file LIST, not both")
        objects = load_placements(file, frame_name)
    else:
        if vehicle_type is None or x is None or y is None:
            raise typer.BadParameter("give TYPE X Y, or --file LIST")
        factors = (scale, scale, scale)
        objects = [
            one_object(
                vehicle_type,
                x,
                y,
                math.radians(yaw_deg),
                z,
                frame_name,
                object_id,
                offset,
                ground,
                factors,
            )
        ]
    if bridge:
        if map_name is not None:
            raise typer.BadParameter("--map: with --bridge the terrain is that of terrain_map")
        with _bridge(namespace) as client:
            client.place(objects)
        return
    send_objects(objects, map_name or options.DEMO_MAP, search_path or (), host, port, window)


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
        options.file_option("the model's XML, whose CenterHeightAboveGroundCm to correct"),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="show what would change in the XML, write nothing"),
    ] = False,
) -> None:
    """Compute a model's offset from the two points of a double click in RflySim3D, and correct its
    XML.

    The XML keeps its comments, layout and encoding; a copy of the old file stays beside it
    (NAME.xml.bak).

    Examples:

        rfly objects fit --click 43.943 1.620 -10.465 --object 43.943 1.620 -11.465

        rfly objects fit --click 0 0 -8 --object 0 0 -8.9 --xml Target.xml --dry-run
    """
    from rfly_collision.shapes.vehicle_xml import ELEMENT, correct_center_height
    from rfly_ue_bridge.objects.placement import measure_offset

    if dry_run and xml is None:
        raise typer.BadParameter("--dry-run: shows what would change in --xml FILE")
    try:
        found = measure_offset(click, object_pos)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    print(
        f"offset  {found.height:.4g} m: the model's origin "
        f"{'above' if found.height >= 0 else 'below'} the ground"
    )
    print(f"{ELEMENT}  {found.height_cm:.6g}")
    if found.distance > MAX_BESIDE_M:
        typer.echo(
            f"note: the click point lies {found.distance:.2f} m beside the object; on a slope "
            "click nearer",
            err=True,
        )
    if xml is None:
        return
    done = correct_center_height(xml, found.height_cm, dry_run=dry_run)
    old = "nothing" if done.old_cm is None else f"{done.old_cm:g}"
    if not done.diff:
        print(f"{xml}: says {old} already, nothing to correct")
    elif dry_run:
        print(done.diff)
    else:
        print(f"{xml}: {old} corrected to {done.new_cm:g}; the old file is {done.backup}")


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
    """Move an object that the running ue_bridge_node has placed; it stands on the terrain again.

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
    """Take objects that the running ue_bridge_node has placed out of the scene.

    No packet deletes a model of RflySim3D: it is sent 1000 m below its place, and no longer
    re-sent.

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
    with options.needs_ros(
        "asking a running ue_bridge_node (unlike `rfly objects place` without --bridge)"
    ):
        from rfly_bringup.cli.ros.bridge_client import BridgeClient
    return BridgeClient(namespace)
