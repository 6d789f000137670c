# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly view` as a command, and as the demo starts it."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import threading

import pytest
from node_harness import PATIENCE, run_rfly, wait_until

from rfly_bringup.demo.demo import DemoViewer
from rfly_bringup.runner.up import VIEWER
from rfly_common.imports import how_to_install

pytestmark = pytest.mark.needs("viser")


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", 0))
        return opened.getsockname()[1]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--udp-port", "65535", "--window", "1"], "there is no UDP port 65536"),
        (["--scan-folder", "/nowhere/at/all"], "no such folder"),
        (["--sensors-to", "my-laptop"], "--sensors-to: 'my-laptop' is no IPv4 address"),
        (["--follow", "lead"], "--follow lead: expected the id of a vehicle, or all"),
        (["--lan-interface", "x", "--udp-port", "0"], "--udp-port"),
        (["--film", "a.webp"], "--film: without a recording it has no meaning"),
        (["no.pcap", "--film", "a.mp4"], "--film a.mp4: expected a name that ends in .webp or"),
        (["no.pcap", "--film", "A.WEBP"], "no.pcap: No such file or directory"),
        (["no.pcap"], "no.pcap: No such file or directory"),
    ],
)
def test_mistakes_are_one_line(arguments, said):
    done = run_rfly("view", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_what_the_window_could_not_show_is_said_at_the_end(tmp_path, monkeypatch, capsys):
    """The window ends before a datagram is due; the recording begins with one that is cut."""
    from rfly_bringup.cli.main import main

    path = tmp_path / "a.pcap"
    frame = b"\x45\0\0"  # an IPv4 header of 3 bytes
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)
    path.write_bytes(header + struct.pack("<4I", 0, 0, 3, 3) + frame)
    monkeypatch.setattr("rfly_viewer.window.server.view", lambda *_: None)
    monkeypatch.setattr(sys, "argv", ["rfly", "view", str(path)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    assert capsys.readouterr().err == f"rfly: {path}: left out: cut short (1)\n"


def test_a_missing_viser_says_what_to_install():
    program = (
        "import sys; sys.modules['viser'] = None; from rfly_bringup.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "view"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        2,
        f"rfly: rfly view needs viser; {how_to_install('view')}\n",
    )


def test_the_demos_window_goes_with_the_convoy_over_the_demos_map():
    viewer = DemoViewer(20011, "MountainTerrain")
    expected = "view --udp-port 20011 --follow all --enlarge 3 --map MountainTerrain"
    assert " ".join(viewer.command).endswith(expected)
    assert "--map" not in DemoViewer(20011, "").command


@pytest.mark.slow
def test_the_demos_window_answers_and_ends_with_ctrl_c():
    """`answers` is False before the process runs, True while it does; SIGINT ends it with 0."""
    viewer = DemoViewer(free_port(), "")
    assert not viewer.answers()
    process = subprocess.Popen([*viewer.command, "--port", "0"], stdout=subprocess.PIPE, text=True)
    reader = threading.Thread(target=lambda: [viewer.hear(VIEWER, line) for line in process.stdout])
    reader.start()
    try:
        wait_until(viewer.answers, poll_s=0.1)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
        reader.join()
        process.stdout.close()
    assert not viewer.answers()
