# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The tables of `rfly status`, as they are printed."""

from __future__ import annotations

import io

from rich.console import Console

from rfly_bringup.doctor.snapshot import OK, STALE, DiagnosticReport, Snapshot, Source
from rfly_bringup.doctor.status_table import status_tables


def printed(snapshot):
    console = Console(file=io.StringIO(), width=160)
    console.print(status_tables(snapshot))
    return [" ".join(line.split()) for line in console.file.getvalue().splitlines()]


def test_each_node_source_and_bridge_has_its_line():
    counters = {
        "sent_datagrams": "400",
        "fleet_vehicles": "3",
        "stale": "0",
        "not_finite": "2",
        "unmatched_peers": "x",
    }
    lines = printed(
        Snapshot(
            domain_id=5,
            nodes=("/rviz", "/terrain_node", "/ue_bridge_node"),
            statuses=(
                DiagnosticReport("/terrain_node", "terrain", OK, "serving", "Hills", age=9.0),
                DiagnosticReport(
                    "/ue_bridge_node",
                    "bridge",
                    STALE,
                    "no [states] yet",
                    "127.0.0.1:20010",
                    counters,
                    0.5,
                    100.04,
                ),
            ),
            sources=(
                Source("/vehicle_states", "/fleet", frozenset({1, 2, 3, 7}), 50.0, 0.0, "map"),
            ),
        )
    )

    assert lines == [
        "ROS domain 5, discovery SUBNET, 3 nodes",
        "node task of state says age s",
        "/rviz –",
        "/terrain_node terrain Hills silent serving 9.0",
        "/ue_bridge_node bridge 127.0.0.1:20010 stale no [states] yet 0.5",
        "vehicles ids source topic frame Hz age s",
        "4 1-3, 7 /fleet /vehicle_states map 50.0 0.0",
        "bridge sends to dropped datagrams a second",
        "/ue_bridge_node 127.0.0.1:20010 not_finite 2 400 100.0",
    ]


def test_what_nodes_say_is_neither_markup_nor_commands_to_the_terminal():
    hostile = "[/bold]\x1b]0;x\x07"
    values = {"sent_datagrams": "[/red]", "[/x]\x1b[2J": "3"}
    source = Source(hostile, hostile, frozenset({1}), 1.0, 0.0, hostile)

    text = "\n".join(
        printed(
            Snapshot(
                nodes=(hostile,),
                statuses=(
                    DiagnosticReport(hostile, hostile, OK, hostile, hostile, values, 0.5, 1.0),
                ),
                sources=(source,),
            )
        )
    )

    assert "\x1b" not in text
    assert "\x07" not in text
    assert r"[/bold]\x1b]0;x\x07" in text.replace("\n", "")
    assert r"[/x]\x1b[2J 3" in text
