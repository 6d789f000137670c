# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Kernels that a node needs are compiled before it starts, once for each version of the sources."""

from __future__ import annotations

import contextlib
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from node_harness import PATIENCE

from rfly_bringup import warm_up
from rfly_bringup.nodes.amphibious_set import MAPPING, OF_A_VEHICLE
from rfly_bringup.nodes.node_set import NODES
from rfly_bringup.terminal import say_compiling


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """Return the parts that were compiled, in a cache of the test; compiling takes no time."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    parts = []

    class Compiler(contextlib.nullcontext):
        returncode = 0
        stdout = ("altitude\n", "cloud\n")

        def __init__(self, command, **options):
            super().__init__(self)
            parts.append(command[-1])

        def wait(self):
            pass

    monkeypatch.setattr(warm_up.subprocess, "Popen", Compiler)
    return parts


def test_a_part_is_compiled_once_and_the_ground_first(compiled, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(warm_up.os, "cpu_count", lambda: 1)  # several start in any order
    say_compiling.cache_clear()  # it is said once in a process
    warm_up.compile_for_nodes(["trajectory_node", "terrain_node", "ue_bridge_node"])
    assert compiled == ["terrain", "trajectory"]
    assert "compiling kernels, once for this version" in capsys.readouterr().err
    warm_up.compile_for_nodes(["terrain_node", "collision_node", "trajectory_node"])
    assert compiled == ["terrain", "trajectory", "collision"]
    warm_up.compile_for_nodes(["trajectory_node"], avoidance=True)
    assert compiled == ["terrain", "trajectory", "collision", "avoidance"]
    warm_up.compile_for_nodes(["terrain_node", "collision_node", "trajectory_node"])
    assert len(compiled) == 4
    shutil.rmtree(tmp_path)  # a cache that the user has cleared
    warm_up.compile_for_nodes(["terrain_node"])
    assert compiled[4:] == ["terrain"]


def test_the_bar_grows_with_each_kernel_and_is_full_at_the_end(compiled, monkeypatch):
    shares = []
    monkeypatch.setattr(
        warm_up, "progress_bar", lambda text, says: contextlib.nullcontext(shares.append)
    )
    monkeypatch.setattr(warm_up, "PARTS", {name: warm_up.WarmUpPart(4, ()) for name in ("a", "b")})
    warm_up.compile_first(["a", "b"])
    # two kernels of each part's four, then the rest as the part is ready
    assert sorted(shares)[-1] == shares[-1] == 1.0
    assert {0.125, 0.25} <= set(shares)
    assert all(8 * share == round(8 * share) for share in shares)


def test_the_set_up_counts_kernels_of_a_total_that_stays(compiled, monkeypatch, capsys):
    monkeypatch.setattr(warm_up, "PARTS", {name: warm_up.WarmUpPart(1, ()) for name in ("a", "b")})
    monkeypatch.setattr(warm_up.os, "cpu_count", lambda: 1)
    assert warm_up.main(["a", "b"]) == 0
    # each part compiles two kernels, one more than it is known for
    lines = capsys.readouterr().out.split()
    # a part's end may be told after the next one's first kernel
    assert (len(lines), set(lines), lines) == (6, {"[1/2]", "[2/2]"}, sorted(lines))


def test_a_part_that_fails_is_not_noted(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def fail(command, **options):
        raise subprocess.CalledProcessError(1, command, stderr="no compiler")

    monkeypatch.setattr(warm_up.subprocess, "Popen", fail)
    for _ in range(2):
        with pytest.raises(subprocess.CalledProcessError):
            warm_up.compile_for_nodes(["terrain_node"])


def test_the_nodes_that_are_named_are_nodes():
    assert {*warm_up._NODES} <= {node.executable for node in (*NODES, *OF_A_VEHICLE, MAPPING)}
    only_libraries = {"batches"}
    if_asked_for = {"avoidance"}
    of_nodes = {part for parts in warm_up._NODES.values() for part in parts}
    assert of_nodes | only_libraries | if_asked_for == set(warm_up.PARTS)


def test_the_functions_of_all_parts_are_there():
    assert all(
        callable(pkgutil.resolve_name(name))
        for part in warm_up.PARTS.values()
        for name in part.functions
    )


def test_a_part_that_does_not_exist_is_refused():
    command = [sys.executable, "-m", "rfly_bringup.warm_up", "terain"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("no such part: terain; there are terrain, ")


def test_ctrl_c_waits_for_no_compiler_and_leaves_none(monkeypatch, tmp_path):
    """Compilers that would take a quarter of an hour; the terrain's is skipped."""
    compiler = tmp_path / "python"
    compiler.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/started\nexec sleep 1000\n")
    compiler.chmod(0o755)
    monkeypatch.setattr(warm_up.sys, "executable", str(compiler))

    def interrupted(_jobs):
        raise KeyboardInterrupt

    monkeypatch.setattr(warm_up, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(warm_up.compile_parts(["collision", "planner", "amphibious"], 2))
    started = (tmp_path / "started").read_text().split() if (tmp_path / "started").exists() else []
    assert not [number for number in started if Path("/proc", number).exists()]
