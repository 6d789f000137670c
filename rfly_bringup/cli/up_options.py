# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly up` and `rfly up amphibious`, whose options are the launch files' arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Optional

import typer

from rfly_bringup.cli.options import COMPLETIONS, on_command_line
from rfly_bringup.nodes.amphibious_set import AMPHIBIOUS_ARGUMENTS
from rfly_bringup.nodes.node_set import ARGUMENTS, Argument

up_app = typer.Typer(invoke_without_command=True)

_LAN = Annotated[
    bool,
    typer.Option(
        "--lan",
        help="announce the nodes on the local network too, not only on this host",
    ),
]
_VIEW = Annotated[bool, typer.Option("--view", help="open the browser window, as rfly view does")]


def _up(ctx: typer.Context, **options: Any) -> None:
    """Run terrain, fleet and bridge nodes until Ctrl-C; amphibious: a land-air vehicle.

    It runs the nodes of `ros2 launch rfly_suite rfly.launch.py`.

    Examples:

        rfly up

        rfly up --map ./map/MyTerrain.png --fleet my_fleet.yaml

        rfly up --nodes terrain,ue_bridge           (no fleet: your own vehicles)

        rfly up --host 192.168.1.20 --windows 2     (RflySim3D on another machine)

        rfly up amphibious --view                   (a vehicle that drives and flies)
    """
    if ctx.invoked_subcommand is not None:
        given = [name for name in options if on_command_line(ctx, name)]
        if given:
            flag = given[0].replace("_", "-")
            raise typer.BadParameter(
                f"--{flag}: expected after {ctx.invoked_subcommand!r}, if it has this option"
            )
        return

    from rfly_bringup.runner.up import up

    lan = options.pop("lan")
    raise typer.Exit(up(_as_arguments(options), lan))


def _amphibious(**options: Any) -> None:
    """Run land-air vehicles until Ctrl-C, with all that their scenario needs.

    It runs simulation, sensors, estimator, controllers and mission, as `ros2 launch rfly_suite
    amphibious.launch.py` does.

    Examples:

        rfly up amphibious --view

        rfly up amphibious --scenario hop --lock-step --no-noise

        rfly up amphibious --scenario ./my_scenario.yaml --count 3 --seed 7
    """
    from rfly_bringup.runner.up import up_amphibious

    lan = options.pop("lan")
    view = options.pop("view")
    raise typer.Exit(up_amphibious(_as_arguments(options), view=view, lan=lan))


def _as_arguments(options: dict[str, Any]) -> dict[str, str]:
    """Return options as texts, the form of launch arguments."""
    arguments = {}
    for name, value in options.items():
        if isinstance(value, bool):
            arguments[name] = "true" if value else "false"
        else:
            arguments[name] = value or ""
    return arguments


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    """Return a keyword parameter of a command's function."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _options(arguments: Sequence[Argument]) -> list[inspect.Parameter]:
    """Return launch arguments as options of the same names."""
    parameters = []
    for argument in arguments:
        flag = "--" + argument.name.replace("_", "-")
        help_text = argument.description
        kind: Any = str
        default: Any = argument.default
        if argument.choices == ("true", "false"):
            declaration = f"{flag}/--no-{flag[2:]}"
            kind = Optional[bool]  # noqa: UP045  typer 0.9 (Ubuntu 24.04) can't read `bool | None`
            default = {"true": True, "false": False}.get(argument.default)
        else:
            declaration = flag
            if argument.choices:
                help_text += f" ({', '.join(argument.choices)})"
            if argument.default:
                help_text += f" (default {argument.default})"
        option = typer.Option(
            declaration,
            help=help_text,
            show_default=False,
            autocompletion=COMPLETIONS.get(argument.name),
        )
        parameters.append(_keyword(argument.name, default, Annotated[kind, option]))
    return parameters


def _give_signature(
    function: Callable[..., None], parameters: Sequence[inspect.Parameter]
) -> Callable[..., None]:
    """Give a function the signature from which typer makes the options."""
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {p.name: p.annotation for p in parameters}
    return function


_CONTEXT = inspect.Parameter(
    "ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context
)
_ENDS = [_keyword("lan", False, _LAN)]
up_app.callback()(_give_signature(_up, [_CONTEXT, *_options(ARGUMENTS), *_ENDS]))
up_app.command("amphibious")(
    _give_signature(
        _amphibious,
        [*_options(AMPHIBIOUS_ARGUMENTS), _keyword("view", False, _VIEW), *_ENDS],
    )
)
