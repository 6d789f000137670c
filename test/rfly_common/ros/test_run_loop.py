# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Output of a node's process besides the node's own: it goes to the log, in one line."""

import pytest

pytestmark = pytest.mark.ros


def test_pythons_warnings_are_lines_of_the_log_and_a_client_that_has_gone_is_none(capfd):
    """rclpy warns of a response that it could not send; Python would print file and line."""
    from rfly_common.ros.run_loop import _log_warning

    _log_warning(
        "failed to send response (timeout): client will not receive response",
        RuntimeWarning,
        "executors.py",
        7,
    )
    _log_warning(DeprecationWarning("old\nand new"), DeprecationWarning, "a.py", 3)
    said = capfd.readouterr()
    assert "failed to send" not in said.err + said.out
    lines = [line for line in (said.err + said.out).splitlines() if "old and new" in line]
    assert len(lines) == 1
    assert lines[0].startswith("[WARN]")
