# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Threads that no data ends."""

from __future__ import annotations

import ast
import queue
from pathlib import Path

from node_harness import PATIENCE

from rfly_common.threads.loop_thread import LONGEST_TEXT, LoopThread, describe_error

ROOT = Path(__file__).parents[3]

SHORT_LIVED = {
    "rfly_common/startup.py",  # ends the process
    "rfly_common/ros/run_loop.py",  # one piece of work, whose error its caller gets
    "rfly_common/threads/processes.py",  # waits for the end of the parent
    "rfly_bringup/ros/graph_watch.py",  # one question to a window
    "rfly_bringup/runner/supervisor.py",  # the lines of a child, until it ends
    "rfly_bringup/demo/demo.py",  # imports
    "rfly_bringup/topic_recording/foxglove_server.py",  # an asyncio loop, whose tasks do not end it
    "rfly_viewer/drawing/terrain_layer.py",  # one mesh
}
"""Files with threads that read nothing from outside, or that are guarded otherwise."""


def test_a_step_that_raises_is_reported_and_the_next_one_follows(monkeypatch):
    reported = []
    monkeypatch.setattr(LoopThread, "report", reported.append)
    jobs = queue.SimpleQueue()
    done = []

    def step():
        job = jobs.get()
        done.append(1.0 / job)
        return job != 4

    thread = LoopThread(step, "test")
    thread.start()
    for job in (1, 0, "x", 2, 4):
        jobs.put(job)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert done == [1.0, 0.5, 0.25]
    assert [type(error) for error in reported] == [ZeroDivisionError, TypeError]


def test_an_error_is_described_in_one_short_line_once_in_ten_seconds(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("rfly_common.threads.loop_thread.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("rfly_common.threads.loop_thread._logged_at", {})
    due = []
    for clock[0] in (100.0, 109.9, 110.0):
        try:
            raise ValueError("a\nb" * 1000)
        except ValueError as error:
            report = describe_error(error)
        due.append(report.is_due)
        assert report.place.partition(":")[0].endswith("test_loop_thread.py")
        assert report.text.startswith("ValueError: a ba b")
        assert len(report.text) == LONGEST_TEXT
    assert due == [True, False, True]


def test_threads_that_live_long_are_loop_threads():
    found = set()
    for file in ROOT.glob("rfly_*/**/*.py"):
        text = file.read_text(encoding="utf-8")
        calls = "threading.Thread" in text and [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "threading.Thread"
        ]
        if calls:
            found.add(file.relative_to(ROOT).as_posix())
    assert found == SHORT_LIVED
