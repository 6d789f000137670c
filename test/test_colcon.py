# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The package builds with CMake and colcon in the environment of `make env`; its nodes start."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from node_harness import PATIENCE

ROOT = Path(__file__).parents[1]

pytestmark = [
    pytest.mark.ros,
    pytest.mark.needs("make env", "colcon_core"),
]


JOIN_SOURCES = """
function(join_sources)
  get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    if(target MATCHES "typesupport_(fastrtps_c|fastrtps_cpp|cpp|c)$")
      set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
    endif()
  endforeach()
endfunction()
cmake_language(DEFER CALL join_sources)
"""
"""CMake's words to compile all C++ files of a library as one, which parses their headers once."""


@pytest.fixture
def build_environment():
    """The environment of a shell in which .venv is active."""
    from node_harness import shell_environment

    path = os.pathsep.join([f"{sys.prefix}/bin", os.environ["PATH"]])
    return {**shell_environment(), "VIRTUAL_ENV": sys.prefix, "PATH": path}


@pytest.mark.exhaustive
def test_cmake_configures_and_its_targets_name_no_folder_of_this_machine(
    build_environment, tmp_path
):
    """The wheels' targets name folders that do not exist, and .venv lies in the source tree."""
    command = ["cmake", "-S", ROOT, "-B", tmp_path, f"-DCMAKE_INSTALL_PREFIX={tmp_path}/install"]
    run = subprocess.run(
        [*command, "-DBUILD_TESTING=OFF"],
        env=build_environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr

    exported = list((tmp_path / "CMakeFiles" / "Export").rglob("*.cmake"))
    assert any("rosidl_generator_py" in file.name for file in exported)
    texts = "".join(file.read_text(encoding="utf-8") for file in exported)
    assert "INTERFACE_INCLUDE_DIRECTORIES" in texts
    assert sys.prefix not in texts
    assert sysconfig.get_path("include") not in texts


@pytest.mark.exhaustive
@pytest.mark.timeout(1500)
def test_a_node_of_a_colcon_workspace_answers(build_environment, domain_id, tmp_path):
    """The whole package is built as CONTRIBUTING says, and its terrain node gives an altitude.

    It uses the libraries of the workspace, not those of the same name in .venv. Only the C++ files
    of a library are compiled together, in a fraction of the time.
    """
    from node_harness import Peer
    from rfly_suite.srv import GetTerrainAltitude

    from rfly_terrain import HeightMap

    bases = [f"--{name}-base={tmp_path}/{name}" for name in ("build", "install")]
    colcon = ["colcon", f"--log-base={tmp_path}/log", "build", *bases]
    joined = tmp_path / "join_sources.cmake"
    joined.write_text(JOIN_SOURCES, encoding="utf-8")
    subprocess.run(
        [*colcon, "--cmake-args", "-DBUILD_TESTING=OFF", f"-DCMAKE_PROJECT_INCLUDE={joined}"],
        cwd=ROOT,
        env=build_environment,
        timeout=1400,
        check=True,
    )

    script = f". {tmp_path}/install/setup.sh; exec lib/rfly_suite/terrain_node"
    node = subprocess.Popen(
        ["sh", "-c", script],
        cwd=tmp_path / "install" / "rfly_suite",
        env={
            **build_environment,
            "ROS_DOMAIN_ID": str(domain_id),
            "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        },
    )
    try:
        peer = Peer(domain_id)
        answer = peer.call(GetTerrainAltitude, "get_terrain_altitude", x=1.5, y=2.0)
        peer.close()
        mapped = Path(f"/proc/{node.pid}/maps").read_text(encoding="utf-8")
    finally:
        node.terminate()
        assert node.wait(PATIENCE) == 0

    assert answer.altitude == pytest.approx(HeightMap.load("JacksboroFault").altitude(1.5, 2.0))
    used = {line.split()[-1] for line in mapped.splitlines() if "librfly_suite__" in line}
    assert used
    assert {Path(file).parent for file in used} == {tmp_path / "install" / "rfly_suite" / "lib"}
