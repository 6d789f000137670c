# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A node's status while several kinds of input are refused at once."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

pytestmark = pytest.mark.ros


@pytest.fixture
def make_node(domain_id):
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain_id)
    nodes = []

    def make(*arguments):
        arguments = ["--ros-args", *arguments]
        nodes.append(rclpy.create_node("any", context=context, cli_args=arguments))
        return nodes[-1]

    yield make
    for node in nodes:
        node.destroy_node()
    rclpy.shutdown(context=context)


@pytest.fixture
def sent(make_node):
    """Return a node's diagnostics and the statuses that it sends."""
    from rfly_common.ros.diagnostics import OK, Diagnostics

    statuses = []
    diagnostics = Diagnostics(make_node(), "task", "")
    diagnostics._publisher = SimpleNamespace(publish=lambda array: statuses.extend(array.status))
    diagnostics.set(OK, "running")
    return diagnostics, statuses


def test_each_kind_of_each_source_is_told(sent, capfd):
    from rfly_common.diagnostic_reasons import Reason, reasons_in
    from rfly_common.ros.diagnostics import ERROR, OK, WARN

    diagnostics, statuses = sent
    for _ in range(50):
        diagnostics.drop("bad_quaternion", 1, "p_zero/pose", subject="p_zero/pose")
        diagnostics.drop("stale", 2, "p_back/pose", subject="p_back/pose")
        diagnostics.refuse("refused_clouds", "lidar/points: no x", subject="lidar/points")

    diagnostics.publish()
    status = statuses[-1]
    assert status.level == WARN
    values = {pair.key: pair.value for pair in status.values}
    assert reasons_in(values) == [
        (Reason.BAD_QUATERNION, "p_zero/pose"),
        (Reason.STALE, "p_back/pose"),
        (Reason.OTHER, "lidar/points"),
    ]
    assert (values["bad_quaternion"], values["stale"], values["refused_clouds"]) == (
        "50",
        "100",
        "50",
    )

    # no other state hides them, and they hide none
    diagnostics.set(ERROR, "no map")
    assert statuses[-1].level == ERROR
    for text in ("no map", "p_zero/pose", "p_back/pose", "lidar/points: no x"):
        assert text in statuses[-1].message
    diagnostics.set(OK, "running")
    assert statuses[-1].level == WARN

    said = capfd.readouterr()
    lines = [line for line in (said.out + said.err).splitlines() if "WARN" in line]
    assert len(lines) == 3


def test_parameters_that_the_node_does_not_have(make_node, tmp_path, monkeypatch, capfd):
    """The values of a section for all nodes are for a look at all nodes to judge."""
    from rfly_common.diagnostic_reasons import Reason, reasons_in
    from rfly_common.ros.diagnostics import OK, WARN, Diagnostics

    params = tmp_path / "params.yaml"
    params.write_text(
        "any:\n  ros__parameters: {ratee: 1.0}\n"
        "/**:\n  ros__parameters: {of_another: 1}\n"
        "/other:\n  ros__parameters: {x: 1}\n",
        encoding="utf-8",
    )
    words = ["--params-file", str(params), "-p", "typed:=2"]
    monkeypatch.setattr("sys.argv", ["any", "--ros-args", *words])
    node = make_node(*words)
    node.declare_parameter("rate", 5.0)

    statuses = []
    diagnostics = Diagnostics(node, "task", "")
    diagnostics._publisher = SimpleNamespace(publish=lambda array: statuses.extend(array.status))

    # a problem while the node is being made, before it has declared all
    diagnostics.set(WARN, "no map")
    assert statuses[-1].message == "no map"
    diagnostics.set(OK, "running")
    diagnostics.publish()
    diagnostics.publish()
    values = {pair.key: pair.value for pair in statuses[-1].values}
    assert reasons_in(values) == [
        (Reason.UNKNOWN_PARAMETER, "ratee"),
        (Reason.UNKNOWN_PARAMETER, "typed"),
    ]
    assert values["undeclared_parameters"] == "of_another"
    assert values["sections_of_others"] == "/other"
    assert f"parameter ratee of {params}:2 is unknown here; did you mean rate?" in (
        statuses[-1].message
    )

    said = capfd.readouterr()
    lines = [line for line in (said.out + said.err).splitlines() if "WARN" in line]
    assert len(lines) == 2
