"""What every test may use, and the account of skipped tests with which a run ends."""

from __future__ import annotations

import importlib.util
import os
import re
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from hypothesis import settings

# The same examples in every run, so that a change is told by what changed; `make fuzz` draws new ones each time.
settings.register_profile("same", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

# What a bare machine cannot help: the ROS wheels lack launch and RViz, and a Debian program may not be installable.
ALLOWED_SKIPS = re.compile(
    r"launch is not installed|sensor_msgs_py is not installed|RViz is not installed|the program \S+ is not installed"
)

_NEEDED_MODULES = {
    "ros": (("rclpy", "rfly_suite"), "rclpy and the interfaces are not importable"),
    "needs_launch": (("launch", "launch_ros"), "launch is not installed"),
}


# Modules whose tests use RflySim's own ports (20006, 20009, 20010 …), which only one process at a time can have.
_FIXED_PORTS = (
    "test/examples/test_experiments.py",
    "test/rfly_bringup/cli/test_record.py",
    "test/rfly_bringup/cli/test_view.py",
    "test/rfly_bringup/cli/test_wire.py",
    "test/rfly_bringup/runner/test_up.py",
    "test/rfly_ue_bridge/sdk/test_matlab_calls.py",
    "test/rfly_ue_bridge/sdk/test_listener.py",
    "test/rfly_ue_bridge/sdk/test_ue4_ctrl_api.py",
    "test/rfly_ue_bridge/viewer/test_listener.py",
    "test/test_docs.py",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Minutes of random input run only where `-m` names them; modules with slow tests come first, for several processes
    that are to end together."""
    slow = {_module(item.nodeid) for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: _module(item.nodeid) not in slow)
    if "fuzz_full" in config.option.markexpr:
        return
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("fuzz_full")])
    items[:] = [item for item in items if not item.get_closest_marker("fuzz_full")]


def _module(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With `-n`: a module's tests stay in one process, and so do those of all that use RflySim's own ports."""
    from xdist.scheduler import LoadScopeScheduling

    class ByModule(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            module = _module(nodeid)
            return "fixed ports" if module in _FIXED_PORTS else module

    return ByModule(config, log)


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, (modules, reason) in _NEEDED_MODULES.items():
        if item.get_closest_marker(marker) and not all(map(importlib.util.find_spec, modules)):
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """After pytest's own closing line: how many tests were skipped, and why. With RFLY_STRICT_SKIPS=1 a reason that
    ALLOWED_SKIPS does not name fails the run."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.config.option.collectonly:
        return
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for report in reporter.stats.get("skipped", [])
    )
    account = "; ".join(f"{reason}: {count}" for reason, count in sorted(reasons.items()))
    reporter.write_line(f"skipped: {reasons.total()}" + (f" ({account})" if account else ""))
    refused = [reason for reason in reasons if not ALLOWED_SKIPS.search(reason)]
    if refused and os.environ.get("RFLY_STRICT_SKIPS") == "1":
        reporter.write_line(f"not allowed to be skipped here: {'; '.join(refused)}", red=True)
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


# A bound port is the claim to a domain: it holds between processes and users, and ends with its process.
_CLAIM_PORT = 11100
_DOMAINS = range(1, 102)


@pytest.fixture
def domain_id(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A ROS domain that no other test on this machine uses meanwhile, set in the environment; announced on this host
    only, and with logs in a temporary folder."""
    with _domain(tmp_path_factory) as domain:
        yield domain


@pytest.fixture(scope="module")
def shared_domain_id(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The same for a whole module: for tests that only read from one running node."""
    with _domain(tmp_path_factory) as domain:
        yield domain


@contextmanager
def _domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with ExitStack() as claims, pytest.MonkeyPatch.context() as environment:
        domain = _claim_domain(claims)
        environment.setenv("ROS_DOMAIN_ID", str(domain))
        environment.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        environment.setenv("ROS_LOG_DIR", str(tmp_path_factory.mktemp("ros_log")))
        for name in ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS"):
            environment.delenv(name, raising=False)
        yield domain


def _claim_domain(claims: ExitStack) -> int:
    """Starts elsewhere in each process and goes on from test to test: a killed node's remains are not met soon."""
    global _next_domain  # noqa: PLW0603
    for _ in _DOMAINS:
        domain = _next_domain
        _next_domain = _DOMAINS[domain % len(_DOMAINS)]
        claim = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            claim.bind(("127.0.0.1", _CLAIM_PORT + domain))
        except OSError:
            claim.close()
            continue
        claims.enter_context(claim)
        return domain
    raise RuntimeError(f"all ROS domains from {_DOMAINS[0]} to {_DOMAINS[-1]} are claimed by other tests")


_next_domain = _DOMAINS[os.getpid() % len(_DOMAINS)]
