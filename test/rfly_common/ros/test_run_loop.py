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


def test_without_numba_a_node_says_so_once_and_how_to_get_it(domain_id, monkeypatch):
    """One INFO of the log; once it was a raw line."""
    from node_harness import NodeProcess, Peer
    from rfly_suite.srv import GetTerrainAltitude

    monkeypatch.setenv("RFLY_DISABLE_NUMBA", "1")
    with NodeProcess("terrain_node", domain_id) as node:
        peer = Peer(domain_id)
        try:
            assert peer.call(GetTerrainAltitude, "get_terrain_altitude", x=0.0, y=0.0).success
        finally:
            peer.close()
        assert node.stop() == 0
        lines = [line for line in node.output.splitlines() if "kernels are not compiled" in line]
        assert len(lines) == 1, node.output
        assert lines[0].startswith("[INFO]")


def test_it_is_told_how_numba_is_got(monkeypatch):
    import importlib.util

    from rfly_common.kernels import jit

    monkeypatch.delenv("RFLY_DISABLE_NUMBA", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install numba" in jit.plain_because.__wrapped__()
