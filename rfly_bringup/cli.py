"""The `rfly` command. Imports lazily: `rfly --help` answers at once."""

from __future__ import annotations

import inspect
import sys
from typing import Annotated, Any, Optional

import typer

from rfly_bringup.cli_drive import drive
from rfly_bringup.cli_fleet import fleet_app
from rfly_bringup.cli_mission import mission_app
from rfly_bringup.cli_objects import objects_app
from rfly_bringup.cli_plan import plan
from rfly_bringup.cli_record import dissector, record, replay
from rfly_bringup.cli_sim import sim_app
from rfly_bringup.cli_terrain import terrain_app
from rfly_bringup.cli_view import view
from rfly_bringup.cli_wire import listen, send
from rfly_bringup.node_set import ARGUMENTS
from rfly_common.errors import RflyError

app = typer.Typer(
    name="rfly",
    help="RflySim's terrain, vehicles and RflySim3D window for ROS 2.\n\n"
    "Try: `rfly up`, then in another shell `rfly listen`; `rfly terrain plot JacksboroFault --out relief.png`",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)
app.add_typer(terrain_app, name="terrain")
app.add_typer(objects_app, name="objects")
app.add_typer(mission_app, name="mission")
app.add_typer(fleet_app, name="fleet")
app.add_typer(sim_app, name="sim")
app.command()(send)
app.command()(listen)
app.command()(view)
app.command(context_settings={"ignore_unknown_options": True})(plan)  # so that -200,80 is a place
app.command()(drive)
app.command()(record)
app.command()(replay)
app.command()(dissector)


def _up(**options: Any) -> None:
    """Run terrain, bridge and trajectory node until Ctrl-C, as `ros2 launch rfly_suite rfly.launch.py` does.

    Examples:

        rfly up

        rfly up --map ./map/MyTerrain.png --fleet my_fleet.yaml

        rfly up --host 192.168.1.20 --windows 2     (RflySim3D on another machine)
    """
    from rfly_bringup.up import up

    lan = options.pop("lan")
    arguments = {
        name: ("true" if value else "false") if isinstance(value, bool) else value or ""
        for name, value in options.items()
    }
    raise typer.Exit(up(arguments, lan))


def _up_signature() -> inspect.Signature:
    """The options of `rfly up`: those of the launch files, from the one description of both, and `--lan`."""
    parameters = []
    for argument in ARGUMENTS:
        flag = "--" + argument.name.replace("_", "-")
        boolean = argument.choices == ("true", "false")
        choices = f" ({', '.join(argument.choices)})" if argument.choices and not boolean else ""
        declarations = [f"{flag}/--no-{flag[2:]}"] if boolean else [flag]
        option = typer.Option(*declarations, help=argument.description + choices, show_default=False)
        kind: Any = Optional[bool] if boolean else str  # noqa: UP045  typer 0.9 (Ubuntu 24.04) can't read `bool | None`
        annotation: Any = Annotated[kind, option]
        default: Any = {"true": True, "false": False}.get(argument.default) if boolean else argument.default
        parameters.append(_keyword(argument.name, default, annotation))
    lan = Annotated[
        bool, typer.Option("--lan", help="announce the nodes on the local network too, not on this host only")
    ]
    return inspect.Signature([*parameters, _keyword("lan", False, lan)])


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


_up.__signature__ = _up_signature()  # type: ignore[attr-defined]
_up.__annotations__ = {p.name: p.annotation for p in _up_signature().parameters.values()}
app.command("up")(_up)


def main() -> None:
    """Entry point of `rfly`: a mistake of the caller is one line on stderr and exit code 2."""
    # typer carries click inside from 0.16 on and imports it before: the class is reached by way of its public child
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
    try:
        code = app(standalone_mode=False)
    except usage_error as error:
        if not error.format_message():  # no arguments at all: the help is printed already
            sys.exit(2)
        _complain(error.format_message())
    except RflyError as error:
        _complain(str(error))
    except OSError as error:
        _complain(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str) -> None:
    print("rfly: " + " ".join(text.split()), file=sys.stderr)
    sys.exit(2)
