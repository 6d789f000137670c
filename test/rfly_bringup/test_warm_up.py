"""Kernels that a node needs are compiled before it starts, once for each version of the sources."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from rfly_bringup import warm_up
from rfly_bringup.nodes.amphibious_set import MAPPING, OF_A_VEHICLE
from rfly_bringup.nodes.node_set import NODES
from rfly_common.kernels.jit import use_numba

needs_compiler = pytest.mark.skipif(not use_numba(), reason="numba is not used")


@pytest.fixture
def compiled(monkeypatch, tmp_path):
    """The parts that were compiled, in a cache of the test's own; compiling itself takes no time."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    parts = []

    def note(command, **options):
        parts.append(command[-1])

    monkeypatch.setattr(warm_up.subprocess, "run", note)
    return parts


@needs_compiler
def test_a_part_is_compiled_once_and_the_ground_first(compiled, capsys, tmp_path):
    warm_up.compile_for_nodes(["trajectory_node", "terrain_node", "ue_bridge_node"])
    assert compiled == ["terrain", "trajectory"]
    assert "compiling kernels, once for this version (terrain, trajectory)" in capsys.readouterr().err
    warm_up.compile_for_nodes(["terrain_node", "collision_node", "trajectory_node"])
    assert compiled == ["terrain", "trajectory", "collision"]
    warm_up.compile_for_nodes(["terrain_node", "collision_node", "trajectory_node"])
    assert len(compiled) == 3
    shutil.rmtree(tmp_path)  # a cache that the user has cleared
    warm_up.compile_for_nodes(["terrain_node"])
    assert compiled[3:] == ["terrain"]


@needs_compiler
def test_a_part_that_fails_is_not_noted(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def fail(command, **options):
        raise subprocess.CalledProcessError(1, command, stderr="no compiler")

    monkeypatch.setattr(warm_up.subprocess, "run", fail)
    for _ in range(2):
        with pytest.raises(subprocess.CalledProcessError):
            warm_up.compile_for_nodes(["terrain_node"])


def test_the_nodes_that_are_named_are_nodes():
    assert {*warm_up._NODES} <= {node.executable for node in (*NODES, *OF_A_VEHICLE, MAPPING)}
    assert {part for parts in warm_up._NODES.values() for part in parts} == set(warm_up.PARTS)


def test_the_functions_of_all_parts_are_there():
    assert all(callable(function) for name in warm_up.PARTS for function in warm_up._functions(name))


def test_a_part_that_does_not_exist_is_refused():
    command = [sys.executable, "-m", "rfly_bringup.warm_up", "terain"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert ended.stderr.startswith("no such part: terain; there are terrain, ")
