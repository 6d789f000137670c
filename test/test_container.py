# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The container recipe, as far as it can be tried without a container.

Files, shell, keys and commands are checked.
"""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import pytest
from node_harness import PATIENCE
from page_commands import ROOT

TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STEPS = [
    tuple(line.split(maxsplit=1))
    for line in re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
    if line.strip()
]
"""(instruction, its words) of the Dockerfile"""
DEVCONTAINER = ROOT / ".devcontainer" / "devcontainer.json"
WORKFLOW = (ROOT / ".github" / "workflows" / "ros.yml").read_text(encoding="utf-8")


def steps(instruction: str) -> list[str]:
    return [words for name, words in STEPS if name == instruction]


def extras() -> set[str]:
    """Return the keys of package.xml that rosdep installs only with RFLY_EXTRAS=true."""
    depends = ElementTree.parse(ROOT / "package.xml").iter("exec_depend")
    return {str(each.text) for each in depends if each.get("condition") == "$RFLY_EXTRAS == true"}


def check_shell(script: str) -> None:
    run = subprocess.run(
        ["bash", "-n", "-c", script],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stderr


def test_what_is_copied_exists_and_is_not_ignored():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    sources = [words.split()[0] for words in steps("COPY")]
    assert sources == ["package.xml", "."]
    for source in sources:
        assert (ROOT / source).exists()

    needed = {
        "package.xml",
        "CMakeLists.txt",
        "cmake",
        "msg",
        "srv",
        "action",
        "launch",
        "rviz",
        "setup.py",
    }

    for name in needed | {path.parent.name for path in ROOT.glob("rfly_*/__init__.py")}:
        assert (ROOT / name).exists()
        assert not any(fnmatch.fnmatch(name, pattern) for pattern in ignored)


def test_nothing_that_was_built_gets_into_the_image():
    """Every folder that git ignores is ignored here too.

    A copied build or .venv would be that of another machine.
    """
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    by_git = [
        line
        for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split("\n")
        if line[:1] not in ("#", "")
    ]
    assert {line.strip("/") for line in by_git} <= {
        pattern.removeprefix("**/") for pattern in ignored
    }


def test_shell_lines_are_shell():
    assert len(steps("RUN")) > 3
    for script in steps("RUN"):
        check_shell(script)


def test_dependencies_and_build_are_those_of_the_workflow():
    """The recipe does the same steps in the same image as the workflow, which proves them."""
    script = " ".join(" ".join(steps("RUN")).split())
    assert steps("FROM") == ["ros:jazzy"]
    distro = WORKFLOW.replace("${{ matrix.distro }}", "jazzy")
    commands = r"^ +((?:[A-Z_]+=\w+ )*rosdep .*|source /opt.*)$"
    for command in re.findall(commands, distro, re.MULTILINE):
        assert command.strip() in script
    assert "colcon build" in script


def test_the_image_sources_its_workspace_and_runs_its_command(tmp_path):
    """The unchanged entry point works with another workspace folder that has a setup.bash."""
    shell, option, script, name = json.loads(steps("ENTRYPOINT")[0])
    (tmp_path / "install").mkdir()
    (tmp_path / "install" / "setup.bash").write_text(
        "export FROM_WORKSPACE='sourced it'\n", encoding="utf-8"
    )
    command = [
        shell,
        option,
        script.replace("/workspace", str(tmp_path)),
        name,
        "printenv",
        "FROM_WORKSPACE",
    ]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)

    assert run.stdout == "sourced it\n"


def test_what_it_starts_exists():
    ros2, launch, package, file, *arguments = json.loads(steps("CMD")[0])
    assert (ros2, launch, package) == ("ros2", "launch", "rfly_suite")
    assert (ROOT / "launch" / file).is_file()
    from rfly_bringup.nodes.node_set import ARGUMENTS

    assert {argument.partition(":=")[0] for argument in arguments} <= {
        each.name for each in ARGUMENTS
    }
    (install,) = re.findall(r"\S.*rosdep install", " ".join(steps("RUN")))
    assert "RFLY_EXTRAS=true" in install
    assert "rviz2" in extras()


def test_the_editors_container_is_built_from_it():
    settings = json.loads(DEVCONTAINER.read_text(encoding="utf-8"))
    assert (DEVCONTAINER.parent / settings["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (DEVCONTAINER.parent / settings["build"]["context"]).resolve() == ROOT
    assert settings["workspaceFolder"] == f"{steps('WORKDIR')[0]}/src/rfly_suite"
    assert f"target={settings['workspaceFolder']}," in settings["workspaceMount"]
    check_shell(settings["postCreateCommand"][2])


@pytest.mark.parametrize("word", ["Dockerfile", "devcontainer"])
def test_the_page_says_that_the_image_has_not_been_built(word):
    unproved = (ROOT / "docs" / "support.md").read_text(encoding="utf-8").partition("## Not run")[2]
    assert word in unproved.partition("\n## ")[0]
