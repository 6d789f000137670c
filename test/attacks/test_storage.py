# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Full disks and damaged caches: recordings and kernels withstand them; a bad end is reported."""

from __future__ import annotations

import random
import sys

import pytest
from marks import exhaustively
from node_harness import PATIENCE

from attacks import storage
from attacks.running import Running


def test_damage_is_of_every_kind(tmp_path):
    files = [tmp_path / "a.nbc", tmp_path / "b.nbc"]
    rng = random.Random(1)
    kinds = set()
    for _ in range(40):
        for file, content in zip(files, (b"a" * 50, b"b" * 60), strict=True):
            file.write_bytes(content)
        kinds.add(storage.spoil(rng, files).split()[-1])
        assert [file.read_bytes() for file in files] != [b"a" * 50, b"b" * 60]
    assert kinds == {"a.nbc", "b.nbc", "cut", "flipped"}


def test_a_recording_that_ends_otherwise_is_reported(monkeypatch):
    def record(_blocks, _file):
        with Running([sys.executable, "-S", "-c", "raise SystemExit(3)"]) as running:
            running.wait(PATIENCE)
        return running, ""

    monkeypatch.setitem(storage.RECORDINGS, "pcap", record)
    result = storage.full_disk("pcap", random.Random(1), 1)
    assert "exit code 3, expected 2" in result.failures[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "full disk, pcap",
        pytest.param(
            "full disk, mcap",
            marks=[pytest.mark.exhaustive, pytest.mark.ros, pytest.mark.needs("mcap")],
        ),
        exhaustively("kernel cache"),
    ],
)
def test_recordings_and_kernels_stand_it(name):
    result = storage.ATTACKS[name](random.Random(2), storage.SHORT_TRIES)
    assert (result.tried, result.failures) == (storage.SHORT_TRIES, ())
