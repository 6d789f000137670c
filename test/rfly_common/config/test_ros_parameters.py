# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""ROS parameter files: what rcl accepts and refuses, with rcl itself as the judge where it is."""

from __future__ import annotations

import pytest

from rfly_common.config.ros_parameters import read_parameter_file
from rfly_common.errors import ConfigError


def of_a(*lines):
    """Return a file with these lines below the parameters of node a."""
    return "a:\n  ros__parameters:\n" + "".join(f"    {line}\n" for line in lines)


ACCEPTED = {
    "nothing": "",
    "comment": "# nothing\n",
    "no parameters": "a:\n  ros__parameters: {}\n",
    "namespaces": "a:\n  b:\n    ros__parameters:\n      x: 1\n",
    "path": "/a/b:\n  ros__parameters:\n    x: 1\n",
    "wild": "/**:\n  ros__parameters:\n    x: 1\n/*/a:\n  ros__parameters:\n    x: 2\n",
    "words": of_a("t: ~", "n: null", "e: ''", "d: 2020-01-01", "s: 1:30", "u: 1_000"),
    "numbers": of_a("h: 0x1F", "o: 010", "n: 089", "e: 1e3", "p: .5", "big: 99999999999999999999"),
    "not finite": of_a("i: .inf", "m: -.inf", "n: .nan"),
    "groups": of_a("x.y: 1", "x: {z: 2}"),
    "lists": of_a("x: [a, b]", "y: []", "z: [1.0, 2e3]"),
    "tag": of_a("x: !!str 1"),
    "twice": of_a("x: 1") + of_a("y: 2"),
}
REFUSED = {
    "no parameters": ("a:\n", ":1: a: a value, expected NODE"),
    "no values": ("a:\n  ros__parameters:\n", ":2: a/ros__parameters: a value, expected NODE"),
    "forgotten": ("mission_node:\n  rate: 20.0\n", ":2: mission_node/rate: a value, expected NODE"),
    "misspelt": ("a:\n  ros_parameters:\n    x: 1\n", ":3: a/ros_parameters/x: a value"),
    "beside": ("a:\n  ros__parameters:\n    x: 1\n  y: 2\n", ":4: a/y: a value"),
    "no node": ("ros__parameters:\n  x: 1\n", ":1: ros__parameters of '': expected the name"),
    "hyphen": ("a-b:\n  ros__parameters:\n    x: 1\n", ":2: ros__parameters of 'a-b'"),
    "digit": ("1a:\n  ros__parameters:\n    x: 1\n", "of '1a': expected the name of a node"),
    "slashes": ("a//b:\n  ros__parameters:\n    x: 1\n", "of 'a//b'"),
    "half wild": ("a*:\n  ros__parameters:\n    x: 1\n", "of 'a[*]'"),
    "no value": (of_a("x:"), ":3: x: no value; an empty text is ''"),
    "mixed": (of_a("x: [1, 2.0]"), ":3: x: elements of the types int and float"),
    "nested list": (of_a("x: [[1], [2]]"), ":3: x: expected a number, a word, true or false"),
    "alias": (of_a("x: &v 1", "y: *v"), r":4: alias \*v: ROS reads no aliases"),
    "list": ("- a\n", ":1: expected names of nodes"),
    "tab": ("a:\n\tros__parameters:\n", "spaces, not with tabs"),
    "open": ("a: [1\n", ":1: a: a value"),
    "encoding": (b"a:\n  ros__parameters:\n    x: \xe9\n", ":3: not UTF-8 text"),
}


def written(tmp_path, content):
    path = tmp_path / "params.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_file_is_named_with_line_and_remedy(name, tmp_path):
    content, told = REFUSED[name]
    with pytest.raises(ConfigError, match=f"params.yaml.*{told}") as caught:
        read_parameter_file(written(tmp_path, content))
    assert "\n" not in str(caught.value)


def test_types_and_lines(tmp_path):
    """Values are read as rcl does: YAML 1.1's words for true and false, no dates, no base 60."""
    text = of_a(
        *("b: [yes, Off]", "i: [0x1F, 010]", "f: [089, 1e3]", "s: [1:30, '1', yEs]"),
        *("g: {n: .inf, l: []}", "j: 1"),
    )
    (section,) = read_parameter_file(written(tmp_path, text))

    assert (section.node, section.line) == ("/a", 1)
    assert {name: value.type for name, value in section.parameters.items()} == {
        "b": list[bool],
        "i": list[int],
        "f": list[float],
        "s": list[str],
        "g.n": float,
        "g.l": list,
        "j": int,
    }
    assert section.parameters["j"].line == 8


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("a", {"/a"}),
        ("/n/a", {"/n/a"}),
        ("/*/a", {"/n/a"}),
        ("/**/a", {"/a", "/n/a", "/n/m/a"}),
        ("/**", {"/a", "/n/a", "/n/m/a"}),
        ("/n/*", {"/n/a"}),
    ],
)
def test_the_nodes_that_a_section_fits(section, names, tmp_path):
    text = f"{section}:\n  ros__parameters:\n    x: 1\n"
    (found,) = read_parameter_file(written(tmp_path, text))
    assert {name for name in ("/a", "/n/a", "/n/m/a") if found.fits(name)} == names


@pytest.mark.ros
def test_rcl_agrees(tmp_path, domain_id):
    """rcl's own parser accepts and refuses the same files."""
    import rclpy

    from rfly_common.ros.arguments import refusals_in_one_line

    def accepts(content):
        path = written(tmp_path, content)
        context = rclpy.Context()
        try:
            with refusals_in_one_line():
                rclpy.init(
                    args=["--ros-args", "--params-file", str(path)],
                    context=context,
                    domain_id=domain_id,
                )
        except ConfigError:
            return False
        rclpy.shutdown(context=context)
        return True

    assert [name for name, text in ACCEPTED.items() if not accepts(text)] == []
    assert [name for name, (text, _) in REFUSED.items() if accepts(text)] == []
    assert all(
        read_parameter_file(written(tmp_path, text)) is not None for text in ACCEPTED.values()
    )
