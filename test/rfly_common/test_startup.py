# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Signals of a process: at once at its start, in order in a loop, and by force where neither
happens.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from marks import exhaustively
from node_harness import PATIENCE

from rfly_common import startup

ROOT = Path(__file__).parents[2]
STOPS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]

HANGS_WITH_THE_LOCK = """
import ctypes, os
from rfly_common import startup
startup.install_handlers()
startup.spinning()
print("up", flush=True)
while not startup.stop_requested():
    pass
ctypes.PyDLL(None).sleep(1000)
"""
HANGS_WITHOUT_THE_LOCK = HANGS_WITH_THE_LOCK.replace("PyDLL", "CDLL")
HANGS_BEFORE_THE_HANDLER = """
import ctypes
from rfly_common import startup
startup.install_handlers()
{loop}
print("up", flush=True)
# PTHREAD_MUTEX_INITIALIZER: locking it twice waits for ever
mutex = ctypes.create_string_buffer(64)
while True:
    ctypes.CDLL(None).pthread_mutex_lock(mutex)
"""
LOSES_THE_INTERRUPT = """
from rfly_common import startup
startup.install_handlers(shell_codes=True)
startup.interruptible()
class Swallows:
    def __del__(self):
        print("up", flush=True)
        while not startup.stop_requested():
            pass
Swallows()
{then}
"""
COMMAND = """
import time
from rfly_common import startup
startup.install_handlers(shell_codes=True)
startup.interruptible()
try:
    print("up", flush=True)
    time.sleep(1000)
finally:
    print("cleaned", flush=True)
    startup.end(startup.exit_code())
"""
LOOP = """
import time
from rfly_common import startup
startup.install_handlers(shell_codes=True)
with startup.stop_by_signal() as stopped:
    print("up", flush=True)
    while not stopped():
        time.sleep(0.01)
print("cleaned", flush=True)
startup.end(startup.exit_code() or 3)
"""


def forced(line, within_s=startup.STOP_WITHIN_S):
    """Return what is printed where a program that hangs in this line is ended."""
    return f"rfly: ended by force {within_s:g} s after the signal in <string>:{line}\n"


def run(program, number, *, prefix=(), within_s=PATIENCE / 2):
    """(exit code, output) of a program that has said `up`.

    What hangs sleeps far longer than this waits.
    """
    command = [*prefix, sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "RFLY_STOP_WITHIN_S": str(within_s)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            assert process.stdout.readline() == "up\n"
            process.send_signal(number)
            output, _ = process.communicate(timeout=PATIENCE)
            return process.returncode, output
        finally:
            process.kill()


@pytest.mark.parametrize("number", [STOPS[1], *map(exhaustively, STOPS[::2])], ids=lambda s: s.name)
def test_who_hangs_with_the_interpreters_lock_is_ended_by_the_system(number):
    """A node once hung like this in the middleware: a watching thread never got the lock."""
    assert run(HANGS_WITH_THE_LOCK, number, within_s=0.0) == (-signal.SIGALRM, "")


def test_who_hangs_without_the_lock_ends_with_0_and_says_where():
    last_line = len(HANGS_WITHOUT_THE_LOCK.splitlines())
    assert run(HANGS_WITHOUT_THE_LOCK, signal.SIGTERM, within_s=0.0) == (0, forced(last_line))
    for within_s, told in (("1.75", 1.75), ("1.25", startup.STOP_WITHIN_S)):
        output = run(HANGS_WITHOUT_THE_LOCK, signal.SIGTERM, within_s=within_s)[1]
        assert output == forced(last_line, told)


@pytest.mark.parametrize("loop", ["", "startup.spinning()"], ids=["at its start", "in its loop"])
def test_who_hangs_before_the_handler_can_run_ends_with_0(loop):
    """Python runs no handler while the main thread stays in a library, such as the middleware."""
    program = HANGS_BEFORE_THE_HANDLER.format(loop=loop)
    code, output = run(program, signal.SIGTERM, within_s=0.0)
    # the handler has run if the signal came before the hang
    assert (code, output in ("", forced(len(program.splitlines())))) == (0, True)


def test_a_forked_child_that_is_ended_does_not_end_its_parent():
    forks = """
    import os, signal, warnings
    warnings.simplefilter("ignore")  # Python 3.12 and later: forks of a process with threads
    here, there = os.pipe()
    if not (child := os.fork()):
        os.write(there, b"!")
        time.sleep(1000)
    # a signal before this is lost to the child: Python forgets signals during a fork
    os.read(here, 1)
    os.kill(child, signal.SIGTERM)
    assert os.waitpid(child, 0)[1] != 0  # 143, or by the alarm where the machine is busy
    time.sleep(startup.STOP_WITHIN_S + 0.3)
"""

    program = LOOP.replace(
        '    print("up", flush=True)\n', '    print("up", flush=True)' + forks
    ).replace("while not stopped():", "if not stopped():")
    code, output = run(program, signal.SIGCHLD, within_s=0.0)
    assert (code, output[-8:]) == (3, "cleaned\n")


@pytest.mark.parametrize("number", STOPS, ids=lambda s: s.name)
def test_a_command_cleans_up_and_says_what_ended_it(number):
    """The exit code is that of a shell: 128 + the signal."""
    assert run(COMMAND, number) == (128 + number, "cleaned\n")


@pytest.mark.parametrize("number", STOPS, ids=lambda s: s.name)
def test_a_loop_ends_in_order_with_a_code_of_its_own(number):
    assert run(LOOP, number) == (3, "cleaned\n")


def test_an_interrupt_that_python_swallowed_ends_the_process_all_the_same():
    """Python swallows an interrupt in a `__del__`, such as during a heavy import, and notes it."""
    program = LOSES_THE_INTERRUPT.format(then="import time; time.sleep(1000)")
    code, output = run(program, signal.SIGINT, within_s=0.0)
    assert (code, output) == (130, forced(len(program.splitlines())))


def test_a_loop_that_begins_after_a_swallowed_interrupt_ends_at_once():
    then = "with startup.stop_by_signal() as stopped:\n    print('stopped', stopped(), flush=True)"
    assert run(LOSES_THE_INTERRUPT.format(then=then), signal.SIGINT) == (0, "stopped True\n")


def test_after_a_loop_an_interrupt_is_pythons_own_again():
    """A library's loop in somebody's session: Ctrl-C later is a KeyboardInterrupt, no end."""
    program = (
        "import os, signal, time\n"
        "from rfly_common import startup\n"
        "startup.LOCK_GRACE_S = 0.02\n"
        "with startup.stop_by_signal():\n"
        "    pass\n"
        "try:\n"
        "    print('up', flush=True)\n"
        "    time.sleep(1000)\n"
        "except KeyboardInterrupt:\n"
        "    time.sleep(0.5)\n"
        "    print('goes on')\n"
    )
    assert run(program, signal.SIGINT, within_s=0.0) == (0, "goes on\n")


def test_a_second_signal_ends_at_once_unless_it_is_the_same_one():
    """`timeout -s INT` and launchers send it to the process and to its group."""
    twice = HANGS_WITHOUT_THE_LOCK.replace(
        'print("up", flush=True)',
        'import signal, threading, time\nprint("up", flush=True)\n'
        "startup.SAME_S = {same_s}\n"
        "def again():\n"
        "    while not startup.stop_requested():\n"
        "        time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "threading.Thread(target=again).start()",
    ).replace("ctypes.CDLL(None).sleep(1000)", "time.sleep(1000)")

    code, output = run(twice.format(same_s=1000.0), signal.SIGTERM, within_s=0.0)
    assert (code, output) == (0, forced(len(twice.splitlines())))
    assert run(twice.format(same_s=0.0), signal.SIGTERM) == (0, "")


def test_nohup_is_respected():
    """The closed terminal that it sets aside ends nothing; kill does."""
    hang_up = "    import os, signal\n    os.kill(os.getpid(), signal.SIGHUP)\n"
    program = LOOP.replace(
        '    print("up", flush=True)\n',
        hang_up + '    print("gone" if stopped() else "up", flush=True)\n',
    )
    assert run(program, signal.SIGTERM, prefix=["nohup"]) == (3, "cleaned\n")


def test_signals_that_were_blocked_before_are_heard():
    """Scripts of .venv start Python with blocked signals, which stayed deaf through a link."""
    program = (
        "import signal; from rfly_common import startup\n"
        f"signal.pthread_sigmask(signal.SIG_BLOCK, {[int(number) for number in STOPS]})\n"
        "startup.install_handlers()\n"
        "print([int(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, [])])"
    )

    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert run.stdout.strip() == "[]"


ENDS_LATE = """
import atexit, time
from rfly_common import startup
atexit.register(time.sleep, 1000)

def main():
    with startup.stop_by_signal() as stopped:
        print("up", flush=True)
        while not stopped():
            time.sleep(0.01)
"""


def test_a_command_that_was_stopped_does_not_wait_for_pythons_own_end(tmp_path):
    """Python's own end restores the system's defaults, so that a second Ctrl-C would kill it."""
    (tmp_path / "ends_late.py").write_text(ENDS_LATE, encoding="utf-8")
    program = "from rfly_common import startup; startup.run_command_module('ends_late')"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    with subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
