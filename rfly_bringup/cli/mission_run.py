# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly mission start`, `hold`, `resume`, `return` and `status`.

They act on the missions of a running mission_node.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rfly_bringup.cli.mission import mission_app
from rfly_bringup.cli.options import needs_ros
from rfly_bringup.terminal import printable

if TYPE_CHECKING:
    from rfly_bringup.ros.mission_client import MissionClient, Show

_Name = Annotated[
    str,
    typer.Argument(metavar="NAME", help="the vehicle: one in mission_node's parameter vehicles"),
]
_Namespace = Annotated[str, typer.Option(help="namespace of mission_node")]


@mission_app.command()
def start(
    name: _Name,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="a .plan or .waypoints file on mission_node's machine"),
    ],
    repeat: Annotated[
        bool, typer.Option("--repeat", help="start again after the last item, until stopped")
    ] = False,
    start_index: Annotated[
        int, typer.Option(min=0, help="index of the first item to fly, from 0")
    ] = 0,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="show the progress until the mission ends")
    ] = True,
    namespace: _Namespace = "",
) -> None:
    """Start a mission file on a vehicle of the running mission_node, and show its progress.

    Ctrl-C makes the vehicle hold. The exit code is 1 if the mission does not reach its end. The
    file must lie below one of mission_node's file_folders (`rfly up --file-folders`).

    Examples:

        rfly mission start hawk survey.plan

        rfly mission start hawk survey.plan --repeat --no-wait
    """
    from rfly_common.startup import stop_by_signal

    with _client(namespace, name) as client, stop_by_signal() as stopped, _shown(name) as show:
        done, text = client.start(
            file, show, stopped, repeat=repeat, start_index=start_index, wait=wait
        )
    print(printable(f"{name}: {text}"), file=sys.stdout if done else sys.stderr)
    raise typer.Exit(0 if done else 1)


@mission_app.command()
def hold(name: _Name, namespace: _Namespace = "") -> None:
    """Interrupt a vehicle's mission: the vehicle stays where it is.

    Example:

        rfly mission hold hawk
    """
    _command(namespace, name, "HOLD", "holds")


@mission_app.command()
def resume(name: _Name, namespace: _Namespace = "") -> None:
    """Continue an interrupted mission.

    Example:

        rfly mission resume hawk
    """
    _command(namespace, name, "DEFAULT", "carries on")


@mission_app.command("return")
def return_(name: _Name, namespace: _Namespace = "") -> None:
    """Interrupt a vehicle's mission and return to home, where the mission ends.

    Example:

        rfly mission return hawk
    """
    _command(namespace, name, "RTL", "returns to home")


@mission_app.command()
def status(
    name: _Name,
    follow: Annotated[
        bool, typer.Option("--follow", help="keep showing it until the mission ends")
    ] = False,
    namespace: _Namespace = "",
) -> None:
    """Show what a vehicle's mission is doing.

    Examples:

        rfly mission status hawk

        rfly mission status hawk --follow
    """
    from rfly_common.startup import stop_by_signal

    with _client(namespace, name) as client, stop_by_signal() as stopped:
        if follow:
            with _shown(name) as show:
                text = client.status(show, stopped, follow=True)
        else:
            text = client.status(lambda _share, _text: None, stopped, follow=False)
    print(printable(f"{name}: {text}"))


def _command(namespace: str, name: str, command: str, done: str) -> None:
    """Send a command to a vehicle's mission and print its effect."""
    from rfly_missions.mission.items import MissionCommand

    with _client(namespace, name) as client:
        client.command(MissionCommand[command])
    print(f"{name}: {done}")


def _client(namespace: str, name: str) -> "MissionClient":
    """Return a client of a vehicle's mission in the running mission_node."""
    with needs_ros("asking a running mission_node (unlike `rfly mission fly`)"):
        from rfly_bringup.ros.mission_client import MissionClient
    return MissionClient(namespace, name)


@contextmanager
def _shown(name: str) -> "Iterator[Show]":
    """Show progress as a bar on a terminal, elsewhere as a line for each item."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _line_by_item(name)
        return

    columns: list[Any] = [
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
    ]
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(name, total=1.0)
        yield lambda share, text: bar.update(
            task, completed=share, description=printable(f"{name}: {text}")
        )


def _line_by_item(name: str) -> Callable[[float, str], None]:
    """Return a function that prints a line when the mission has come to another item."""
    printed_item = ""

    def show(_share: float, text: str) -> None:
        nonlocal printed_item
        item = text.partition(",")[0]
        if item != printed_item:
            printed_item = item
            print(printable(f"{name}: {item}"), file=sys.stderr, flush=True)

    return show
