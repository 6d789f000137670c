"""`rfly sim urdf`: the land-air vehicle for RViz and robot_state_publisher.

No `from __future__ import annotations` here: typer 0.9 (Ubuntu 24.04) cannot read annotations that are still text.
"""

import sys
from typing import Annotated

import typer

from rfly_bringup.cli.options import MaybePath, MaybeTexts, Overwrite, check_target


def urdf(
    vehicle: Annotated[
        str, typer.Argument(metavar="SET", help="shipped parameters (full, scale, scale_quad) or a YAML file")
    ] = "scale",
    out: Annotated[
        MaybePath, typer.Option("--output", "--out", "-o", metavar="FILE", help="file to write; by default stdout")
    ] = None,
    prefix: Annotated[str, typer.Option(help="before the names of all links, such as car/")] = "",
    mesh: Annotated[
        MaybeTexts,
        typer.Option(metavar="PART=FILE", help="a mesh instead of boxes: of body, wheel or rotor; may be repeated"),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Write the vehicle as a URDF: joints, masses and inertia from its parameters.

    Examples:

        rfly sim urdf > scale.urdf

        rfly sim urdf full --output car.urdf --prefix car/ --mesh body=package://my_car/body.dae
    """
    from rfly_amphibious.description.urdf import vehicle_urdf
    from rfly_amphibious.vehicle.parameters import VehicleParameters

    if out is not None:
        check_target(out, overwrite)
    meshes = {}
    for text in mesh or ():
        part, is_given, file = text.partition("=")
        if not is_given:
            raise typer.BadParameter(f"--mesh {text}: expected PART=FILE, such as body=package://my_car/body.dae")
        meshes[part] = file
    made = vehicle_urdf(VehicleParameters.load(vehicle), prefix, meshes)
    if out is None:
        sys.stdout.write(made)
        return
    out.write_text(made, encoding="utf-8")
    print(out)
