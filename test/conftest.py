# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fixtures for all tests, and the account of skipped tests at the end of a run."""

from __future__ import annotations

import compileall
import gc
import importlib
import importlib.util
import os
import random
import re
import signal
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import claims
import fork_server  # notes the environment as it is now
import pytest
from end_of_run import end_in_time
from hypothesis import HealthCheck, settings
from optional_parts import missing
from whole_files import whole_files

# The same examples in every run, so that only a change of the code changes a result.
# HYPOTHESIS_PROFILE=default draws new ones. A busy machine is no fault of a test, hence no deadline
# for an example and no limit on drawing one.
settings.register_profile(
    "same",
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")
settings.load_profile(PROFILE)

# What a bare machine cannot help: the ROS wheels lack launch and RViz, and a Debian program may not
# be installable.
ALLOWED_SKIPS = re.compile(
    r"launch is not installed|RViz is not installed"
    r"|the program \S+ is not installed"
    r"|the package (ament_\w+|tf2_ros|sensor_msgs_py) is not installed"
    r"|the package (onnxscript|stable_baselines3|torch) is not installed"  # hundreds of MB
)

LONGEST_IN_ID = 200
STOP_WITHIN_S = 30.0
"""Time after which a program that does not end is ended by force, s; a user waits less long."""

# The folders `attacks` and `benchmarks` are not installed, and the root on the path would bring
# `launch/` with it.
for _name in ("attacks", "benchmarks"):
    _spec = importlib.util.spec_from_file_location(
        _name, Path(__file__).parents[1] / _name / "__init__.py"
    )
    assert _spec is not None
    assert _spec.loader is not None
    sys.modules[_name] = _package = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(_package)

_NEEDED_MODULES = {
    "ros": (("rclpy", "rfly_suite"), "rclpy and the interfaces are not importable"),
    "needs_launch": (("launch", "launch_ros"), "launch is not installed"),
}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        metavar="N/PARTS",
        type=_part,
        default=(1, 1),
        help="run each PARTS-th test alone, beginning with the N-th",
    )


def _part(text: str) -> tuple[int, int]:
    """Return (2, 6) of "2/6"; ValueError for what is no part."""
    number, parts = map(int, text.split("/"))
    if not 1 <= number <= parts:
        raise ValueError(f"part {number} of {parts}")
    return number, parts


def pytest_configure(config: pytest.Config) -> None:
    """Take the signals that nohup and a shell's background job ignore; pin Hypothesis's constants.

    All processes that tests start would ignore them, too, and never end. Those may take their time
    for the end: the machine is busy. Hypothesis draws constants of the modules that are loaded, so
    examples would depend on the tests before.
    """
    os.environ.setdefault("RFLY_STOP_WITHIN_S", str(STOP_WITHIN_S))
    providers = importlib.import_module("hypothesis.internal.conjecture.providers")
    if PROFILE == "same" and hasattr(providers, "_get_local_constants"):
        providers._get_local_constants = lambda: providers._local_constants
    for number, usual in (
        (signal.SIGINT, signal.default_int_handler),
        (signal.SIGHUP, signal.SIG_DFL),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)

    # all processes would compile them, as all collect at once
    if getattr(config.option, "numprocesses", None) and not sys.dont_write_bytecode:
        compileall.compile_dir(Path(__file__).parent, quiet=2, workers=2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Return the scheduler of `--dist loadfile`; None: xdist's own."""
    return whole_files(config, log) if config.option.dist == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage among 10,000 tests and their modules, which all stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(trylast=True)  # of the tests that `-m` selects, one part
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect exhaustive tests unless `-m` names them, and all but one part; slow modules first.

    Then several test processes end at about the same time. Modules of a folder are spread evenly:
    side by side they would compile the same kernels, or all wait for their nodes.
    """
    if "exhaustive" not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]

    number, parts = config.getoption("part", (1, 1))  # without: a run from elsewhere
    chosen = items[number - 1 :: parts]
    config.hook.pytest_deselected(items=[*set(items).difference(chosen)])
    items[:] = chosen

    slow = {item.path for item in items if item.get_closest_marker("slow")}
    kinds: dict[tuple[bool, Path], list[Path]] = {}
    for path in dict.fromkeys(item.path for item in items):
        kinds.setdefault((path not in slow, path.parent), []).append(path)
    places = {
        path: (quick, (number + 0.5) / len(paths))
        for (quick, _), paths in kinds.items()
        for number, path in enumerate(paths)
    }
    items.sort(key=lambda item: places[item.path])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compile kernels that the cache lacks, outside the time limit of any test with nodes.

    What 10,000 collected tests and their modules consist of stays: no later collection of garbage
    need walk through it.
    """
    gc.freeze()
    with_nodes = any(item.get_closest_marker("ros") for item in session.items)
    if with_nodes and not session.config.option.collectonly:
        from rfly_bringup.warm_up import PARTS, compile_first

        with claims.turn(claims.KERNELS):
            compile_first(PARTS)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name long data by their argument, as ids appear in the environment and in colcon's output."""
    return argname if isinstance(val, (str, bytes)) and len(val) > LONGEST_IN_ID else None


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, (modules, reason) in _NEEDED_MODULES.items():
        if item.get_closest_marker(marker) and not all(map(importlib.util.find_spec, modules)):
            pytest.skip(reason)
    for needs in item.iter_markers("needs"):
        for reason in filter(None, map(missing, needs.args)):
            pytest.skip(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Fail the last test of a file that leaves the environment changed.

    A library that it has imported may have set a variable. No program could be forked any more, and
    each start would take two seconds of processor time instead of a tenth.
    """
    yield
    if nextitem is not None and nextitem.path == item.path:
        return

    from node_harness import shell_environment

    left = fork_server.changed_for_imports(
        shell_environment(fork_server.ENVIRONMENT), shell_environment()
    )
    if left - _told:
        _told.update(left)
        pytest.fail(f"{item.path.name} leaves in the environment: {', '.join(sorted(left))}")


_told: set[str] = set()
"""Changed variables that have failed a test."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Print how many tests were skipped, and why, after pytest's own closing line.

    With RFLY_STRICT_SKIPS=1, a reason that ALLOWED_SKIPS does not name fails the run. With
    `--last-failed`, print which tests were tried again.
    """
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.config.option.collectonly:
        return
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        if isinstance(report.longrepr, tuple)
        else str(report.longrepr)
        for report in reporter.stats.get("skipped", [])
    )
    account = "; ".join(f"{reason}: {count}" for reason, count in sorted(reasons.items()))
    reporter.write_line(f"skipped: {reasons.total()}" + (f" ({account})" if account else ""))
    refused = [reason for reason in reasons if not ALLOWED_SKIPS.search(reason)]

    if refused and os.environ.get("RFLY_STRICT_SKIPS") == "1":
        reporter.write_line(f"not allowed to be skipped here: {'; '.join(refused)}", red=True)
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    if session.config.getoption("lf", default=False):
        names = ", ".join(item.nodeid for item in session.items)
        reporter.write_line(
            f"second try needed: {len(session.items)}" + (f" ({names})" if names else "")
        )


def pytest_unconfigure() -> None:
    end_in_time(float(os.environ.get("RFLY_TESTS_END_WITHIN_S", "60")))


@pytest.fixture
def domain_id(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A ROS domain of this test alone, set in the environment.

    It is announced on this host only, and its logs are in a temporary folder.
    """
    with _domain(tmp_path_factory) as domain:
        yield domain


@pytest.fixture(scope="module")
def shared_domain_id(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The same for a whole module: for tests that only read from one running node."""
    with _domain(tmp_path_factory) as domain:
        yield domain


@pytest.fixture
def hears_much() -> bool:
    """Return whether this module's peers hear hundreds of messages a second (see Peer)."""
    return False


@pytest.fixture
def peer(domain_id: int, hears_much: bool) -> Iterator[Any]:
    """A node of this test's own, in its domain."""
    from node_harness import Peer

    peer = Peer(domain_id, events=hears_much)
    yield peer
    peer.close()


@contextmanager
def _domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with claims.domain() as domain, pytest.MonkeyPatch.context() as environment:
        environment.setenv("ROS_DOMAIN_ID", str(domain))
        environment.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        environment.setenv("ROS_LOG_DIR", str(tmp_path_factory.mktemp("ros_log")))
        for name in ("ROS_LOCALHOST_ONLY", "ROS_STATIC_PEERS"):
            environment.delenv(name, raising=False)
        yield domain


@pytest.fixture
def rflysim_ports() -> Iterator[None]:
    """RflySim's own ports (20006, 20009, 20010 …) for this test alone."""
    with claims.turn(claims.RFLYSIM_PORTS):
        yield


@pytest.fixture
def rflysim_host() -> Iterator[str]:
    """A loopback address for this test alone: RflySim's own ports are free there."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as claim:
        while True:
            host = (
                f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
            )
            with suppress(OSError):
                claim.bind((host, claims.RFLYSIM_PORTS))
                break
        yield host
