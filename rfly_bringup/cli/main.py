# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The `rfly` command, with lazy imports: `rfly --help` answers at once."""

from __future__ import annotations

import functools
import re
import sys
from difflib import get_close_matches
from typing import Any

import typer

from rfly_bringup.cli.doctor import doctor, status
from rfly_bringup.cli.drive import drive
from rfly_bringup.cli.fleet import fleet_app
from rfly_bringup.cli.mission_run import mission_app
from rfly_bringup.cli.objects import objects_app
from rfly_bringup.cli.plan import plan
from rfly_bringup.cli.sensors import sensors_app
from rfly_bringup.cli.sim import sim_app
from rfly_bringup.cli.terrain import terrain_app
from rfly_bringup.cli.up_options import up_app
from rfly_bringup.cli.view import view
from rfly_bringup.cli.wire import dissector, listen, record, replay, send
from rfly_bringup.cli.world import world_app
from rfly_bringup.terminal import printable, say_compiling
from rfly_common.errors import RflyError
from rfly_common.kernels.compiling import on_compile

app = typer.Typer(
    name="rfly",
    help="RflySim's terrain, vehicles and RflySim3D window for ROS 2.\n\n"
    "Try: `rfly up`, then in another shell `rfly listen`; `rfly terrain plot JacksboroFault --out "
    "relief.png`",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)

_LONGEST_ERROR = 1_000
_MOST_SUGGESTIONS = 3

# panels of `rfly --help`
_RUN = "Run"
_WATCH = "Watch"
_PREPARE = "Prepare, plan and simulate"
_WIRE = "RflySim3D's datagrams"

app.command(rich_help_panel=_RUN)(drive)
app.add_typer(up_app, name="up", rich_help_panel=_RUN)
app.command(rich_help_panel=_WATCH)(view)
app.command(rich_help_panel=_WATCH)(status)
app.command(rich_help_panel=_WATCH)(doctor)
# unknown options are arguments, so that -200,80 is a place
app.command(rich_help_panel=_PREPARE, context_settings={"ignore_unknown_options": True})(plan)
app.add_typer(terrain_app, name="terrain", rich_help_panel=_PREPARE)
app.add_typer(world_app, name="world", rich_help_panel=_PREPARE)
app.add_typer(fleet_app, name="fleet", rich_help_panel=_PREPARE)
app.add_typer(mission_app, name="mission", rich_help_panel=_PREPARE)
app.add_typer(sim_app, name="sim", rich_help_panel=_PREPARE)
app.command(rich_help_panel=_WIRE)(send)
app.command(rich_help_panel=_WIRE)(listen)
app.command(rich_help_panel=_WIRE)(record)
app.command(rich_help_panel=_WIRE)(replay)
app.add_typer(objects_app, name="objects", rich_help_panel=_WIRE)
app.add_typer(sensors_app, name="sensors", rich_help_panel=_WIRE)
app.command(rich_help_panel=_WIRE)(dissector)


@functools.cache
def command() -> Any:
    """Return click's command of `app`, which takes typer 30 ms to make; do not change it."""
    return typer.main.get_command(app)


def main() -> None:
    """Run `rfly`; a mistake of the user is one line on stderr and exit code 2."""
    # typer carries click inside from 0.16 up and imports it before that, so the class is found
    # among the bases of a public one
    usage_error: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

    try:
        with on_compile(lambda _: say_compiling()):
            code = command()(prog_name="rfly", standalone_mode=False)
    except usage_error as error:
        if not error.format_message():  # no arguments: the help is already printed
            sys.exit(2)
        _suggest_options(error)
        _print_error(error.format_message())
    except RflyError as error:
        _print_error(str(error))
    except OSError as error:
        _print_error(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _suggest_options(error: Any) -> None:
    """Give an error for an unknown command, option or value what was expected or meant.

    click proposes any option that shares some letters. These are spelled almost alike, or their
    help has a word of the unknown one: `--no-trajectory` leads to `--nodes`. An argument, which has
    no flag, is known by its name or a word of its help.
    """
    context = getattr(error, "ctx", None)
    if context is None:
        return
    _quote_value(error)

    names = {name: param for param in context.command.params for name in param.opts}
    options = {name: param for name, param in names.items() if name.startswith("-")}
    arguments = [param for name, param in names.items() if name not in options]
    if type(error).__name__ == "UsageError":  # its subclasses have other reasons
        if hasattr(context.command, "list_commands"):
            error.message += f" {context.command_path} has {', '.join(context.command.commands)}."
        else:
            error.message += _expected(context, options)
    if not hasattr(error, "possibilities"):
        return

    word = error.option_name.strip("-")
    if re.match(r"-[\d.]", error.option_name):
        error.message += f"; a negative number stands after --: {context.command_path} -- …"
        return
    error.possibilities = get_close_matches(error.option_name, options, cutoff=0.8)
    if not error.possibilities and any(_is_named(word, argument) for argument in arguments):
        usage = [param.metavar or param.name.upper() for param in arguments]
        error.message += f"; write it alone: {' '.join([context.command_path, *usage])}"
        return
    if not error.possibilities:
        words = set(word.split("-"))
        error.possibilities = [
            flag for flag, option in options.items() if words & _words_of_help(option)
        ][:_MOST_SUGGESTIONS]
    if not error.possibilities:
        error.message += f"; {context.command_path} --help lists them"


def _quote_value(error: Any) -> None:
    """Let an error of pydantic, which newer typers ask, show the value that it does not take."""
    for each in getattr(error.__cause__, "errors", list)()[:1]:
        error.message = error.message.removeprefix("Value error, ")
        value = str(each["input"])
        if value not in error.message:
            error.message = f"{value!r}: {error.message}"


def _expected(context: Any, options: dict[str, Any]) -> str:
    """Return the arguments of a command that got more, or its option that was mistyped.

    A command with negative numbers for arguments takes unknown options for arguments, too.
    """
    for word in sys.argv:
        flag = word.partition("=")[0]
        near = get_close_matches(flag, options, cutoff=0.8)
        if flag.startswith("--") and flag not in options and near:
            return f"; did you mean {', '.join(near)}?"
    pieces = context.command.collect_usage_pieces(context)
    return f"; expected {' '.join([context.command_path, *pieces])}"


def _is_named(word: str, argument: Any) -> bool:
    """Return whether an argument, which has no flag, is known by a word."""
    return word == argument.name or word in _words_of_help(argument)


def _words_of_help(param: Any) -> set[str]:
    """Return the words of a help that mean something: those of more than three letters."""
    return set(re.findall(r"\w{4,}", getattr(param, "help", None) or ""))


def _print_error(text: str) -> None:
    line = " ".join(text.split())
    if len(line) > _LONGEST_ERROR:  # it quotes long input; the reason stands at the end
        line = f"{line[: _LONGEST_ERROR // 2]} … {line[-_LONGEST_ERROR // 2 :]}"
    print(printable(f"rfly: {line}"), file=sys.stderr)
    sys.exit(2)
