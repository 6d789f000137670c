# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly sim fit` and `rfly sim modes`.

The first fits a vehicle's parameters to a log; the second shows the modes of its suspension.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rfly_bringup.cli.options import (
    YAML,
    MaybeFloat,
    MaybePath,
    MaybeText,
    Overwrite,
    check_new_picture,
    check_target,
    file_option,
    optional,
    status,
)
from rfly_common.errors import ConfigError
from rfly_common.files import write_text

if TYPE_CHECKING:
    from rfly_lab.identification.vehicle_fit import VehicleFit


def fit(
    log: Annotated[
        MaybePath,
        typer.Argument(
            metavar="LOG",
            help="a recording of a drive and a flight",
            show_default=False,
        ),
    ] = None,
    vehicle: Annotated[
        str,
        typer.Option(
            metavar="SET",
            help="first guess, with the right geometry: full, scale, scale_quad or a YAML file",
        ),
    ] = "scale",
    mass: Annotated[
        MaybeFloat,
        optional("kg of the whole vehicle, weighed (default: wheel_loads)", min=1e-3),
    ] = None,
    namespace: Annotated[
        MaybeText, optional("the vehicle's namespace, if the log holds several")
    ] = None,
    plot: Annotated[MaybeText, file_option("picture of the parameters and tyre curves")] = None,
    out: Annotated[
        MaybePath,
        file_option("vehicle file to write with the result", "--output", "--out", "-o"),
    ] = None,
    excite: Annotated[
        MaybePath,
        file_option("instead: write the scenario of a manoeuvre that excites all parameters"),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Estimate a vehicle's parameters from a log, with 95 % intervals.

    They are its mass, inertia, rotor constants, struts and tyres.

    Examples:

        rfly sim fit --excite excite.yaml --vehicle scale

        rfly sim run excite.yaml --estimate --mcap excite.mcap

        rfly sim fit excite.mcap --vehicle scale --plot fit.png --output found.yaml
    """
    from rfly_amphibious.vehicle.parameters import VehicleParameters
    from rfly_lab.identification.vehicle_fit import (
        draw_fit,
        excitation,
        fit_vehicle,
        fitted_document,
    )
    from rfly_lab.identification.vehicle_log import read_log

    if (log is None) == (excite is None):
        raise ConfigError("expected either LOG or --excite FILE")
    guess = VehicleParameters.load(vehicle)
    if excite is not None:
        check_target(excite, overwrite, *YAML)
        write_text(excite, excitation(guess, vehicle))
        print(excite)
        return

    assert log is not None
    check_new_picture(plot, overwrite)
    check_target(out, overwrite, *YAML)

    with status(f"reading {log}"):
        recorded = read_log(log, guess, namespace)
    with status("fitting"):
        found = fit_vehicle(recorded, guess, mass)
    _show(found)

    if out is not None:
        write_text(out, fitted_document(vehicle, found, log.name))
        print(out)
    if plot is not None:
        draw_fit(found, Path(plot))
        print(plot)


def _show(found: "VehicleFit") -> None:
    """Print the estimated parameters next to the first guess."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, soft_wrap=True)
    table = Table("parameter", "unit", "found", "± 95 %, model error included", "given", box=None)
    for column in (2, 3, 4):
        table.columns[column].justify = "right"
    for e in found.estimated:
        share = f"{196.0 * e.sigma / abs(e.value):.2f} %" if e.value else f"{1.96 * e.sigma:.3g}"
        table.add_row(e.name, e.unit, f"{e.value:.5g}", share, f"{e.given:.5g}")
    console.print(table)
    for note in found.notes:
        console.print(f"note: {note}", markup=False)
    console.print(f"not identified, kept as given: {', '.join(found.kept)}", markup=False)


def modes(
    vehicle: Annotated[
        str,
        typer.Argument(
            metavar="SET",
            help="shipped parameters (full, scale, scale_quad, scale_six) or a YAML file",
        ),
    ] = "scale",
    plot: Annotated[MaybeText, file_option("picture of the shapes")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Show the modes of a vehicle on its suspension: seven, or nine on six wheels.

    The table holds frequencies, damping ratios and shapes.

    Examples:

        rfly sim modes full

        rfly sim modes scale --plot modes.png
    """
    from rich.console import Console
    from rich.table import Table

    from rfly_amphibious.dynamics.suspension_modes import (
        BODY_FREEDOMS,
        draw_modes,
        suspension_modes,
    )
    from rfly_amphibious.vehicle.parameters import VehicleParameters

    check_new_picture(plot, overwrite)
    params = VehicleParameters.load(vehicle)
    found = suspension_modes(params)

    table = Table(
        "mode",
        "Hz",
        "damped",
        "ratio",
        *BODY_FREEDOMS,
        *params.wheels,
        box=None,
        padding=(0, 1, 0, 0),
    )
    for mode in found:
        figures = (
            f"{mode.frequency:.3f}",
            f"{mode.damped_frequency:.3f}",
            f"{mode.damping_ratio:.3f}",
        )
        table.add_row(mode.name, *figures, *(f"{part + 0.0:.2f}" for part in mode.shape.round(2)))

    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print(
        "damped: Hz; ratio: damping ratio; then the shape: m, rad per metre of the largest part"
    )
    if plot is not None:
        draw_modes(params, found, Path(plot))
        print(plot)
