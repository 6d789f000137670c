# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly doctor` and `rfly status`: problems of a running system, and its state."""

import json
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated

import typer

from rfly_bringup.cli.options import finite, needs_ros
from rfly_bringup.terminal import printable

if TYPE_CHECKING:
    from rfly_bringup.doctor.findings import Finding
    from rfly_bringup.doctor.snapshot import Snapshot
    from rfly_bringup.ros.graph_watch import GraphWatch

WATCHED_S = 5.0
"""Default time, s: nodes report once a second, and an absent machine is known after three."""

_AsJson = Annotated[bool, typer.Option("--json", help="for programs: one JSON object a line")]


def doctor(
    seconds: Annotated[
        float, typer.Option(min=1.0, max=600.0, callback=finite, help="how long to look, s")
    ] = WATCHED_S,
    as_json: _AsJson = False,
) -> None:
    """Look at the running nodes and this machine, and say what is wrong and what to do.

    Exit code 0: nothing is wrong; 1: something is; 2: the command was wrong.

    Examples:

        rfly doctor

        rfly doctor --seconds 15        (on a busy machine, or with nodes that publish seldom)

        ROS_DOMAIN_ID=42 rfly doctor
    """
    from rfly_bringup.cli.options import status as spinner
    from rfly_bringup.doctor.findings import find

    with _watch() as watch:
        with spinner(f"looking for {seconds:g} s"):
            watch.watch(seconds)
        snapshot = watch.snapshot()
    findings = find(snapshot)
    if as_json:
        for finding in findings:
            print(json.dumps(vars(finding), ensure_ascii=False))
    else:
        _print(findings, snapshot)
    raise typer.Exit(1 if any(finding.problem for finding in findings) else 0)


def _watch() -> "GraphWatch":
    with needs_ros("a look at running nodes"):
        from rfly_bringup.ros.graph_watch import GraphWatch
    return GraphWatch()


def _print(findings: "list[Finding]", snapshot: "Snapshot") -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    problems = sum(finding.problem for finding in findings)

    nodes = "1 node" if len(snapshot.nodes) == 1 else f"{len(snapshot.nodes)} nodes"
    where = f"{nodes} in ROS domain {snapshot.domain_id}, discovery {snapshot.discovery_range}"
    verdict = "nothing is wrong"
    if problems:
        verdict = "1 problem" if problems == 1 else f"{problems} problems"
    console.print(f"{where}: {verdict}", style="bold")

    for finding, following in zip_longest(findings, findings[1:]):
        sign, style = ("✗ ", "red") if finding.problem else ("· ", "dim")
        console.print(sign, style=style, end="")
        console.print(printable(finding.what), markup=False)

        # the same advice for several findings in a row comes once
        if finding.do and (following is None or following.do != finding.do):
            console.print(f"    {printable(finding.do)}", style="dim", markup=False)


def status(
    once: Annotated[bool, typer.Option("--once", help="print the table once, for scripts")] = False,
    seconds: Annotated[
        float,
        typer.Option(
            min=1.0, max=600.0, callback=finite, help="how long to look before --once prints, s"
        ),
    ] = WATCHED_S,
) -> None:
    """Show nodes and their messages, vehicles by source, rates and datagrams, live; Ctrl-C ends it.

    Examples:

        rfly status

        rfly status --once
    """
    import sys

    from rich.console import Console
    from rich.live import Live

    from rfly_bringup.doctor.snapshot import Machine
    from rfly_bringup.doctor.status_table import status_tables
    from rfly_common.startup import stop_by_signal

    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    with _watch() as watch, stop_by_signal() as stopped:
        if once:
            watch.watch(seconds, stopped)
        elif console.is_terminal:
            with Live(console=console, auto_refresh=False, screen=True) as live:
                while not stopped():
                    watch.watch(1.0, stopped)
                    live.update(status_tables(watch.snapshot(Machine())), refresh=True)
        else:
            while not stopped():
                watch.watch(1.0, stopped)

        # what was last seen stays, on a terminal too, whose screen is restored at the end
        console.print(status_tables(watch.snapshot(Machine())))
