# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mutated files and bombs: every reader withstands some; a failure is reported with its file."""

from __future__ import annotations

import random
from contextlib import closing

import pytest
from marks import exhaustively
from optional_parts import missing

from attacks import files
from attacks.mutators import BOMBS, MAKERS

NEEDS = dict.fromkeys(("files: geotiff", "files: placed geotiff", "files: ascii grid"), "rasterio")

LONG = {
    f"files: {kind}"
    for kind in ("replay log", "fit log", "placed geotiff", "scenario", "world", "sensors")
}
"""Readers that need seconds to start or to read a file."""


@pytest.fixture(scope="module")
def process():
    """One process for all readers, which would import the same libraries each."""
    with closing(files.ReadingProcess()) as reading:
        yield reading


def test_every_kind_has_a_reader_and_files():
    assert {f"files: {kind}" for kind in MAKERS} == set(files.ATTACKS)
    assert set(BOMBS) <= set(MAKERS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [exhaustively(name) if name in LONG else name for name in files.ATTACKS],
)
def test_readers_withstand_mutated_files(name, process):
    part = NEEDS.get(name)
    if part is not None and missing(part):
        pytest.skip(missing(part))
    result = files.ATTACKS[name](random.Random(3), files.SHORT_TRIES, process)
    assert (result.tried, result.failures) == (files.SHORT_TRIES, ())


@pytest.mark.exhaustive
def test_a_reader_that_stalls_dies_or_swells_is_reported(monkeypatch, tmp_path):
    """A process that ends without an answer, or exceeds its memory or time, is a failure."""
    monkeypatch.setitem(MAKERS, "npy", lambda rng: {".npy": b""})
    monkeypatch.setattr(files, "MAX_MEMORY_MB", 1.0)
    result = files.read_files("npy", "array", random.Random(1), 2)

    assert result.failed == 2
    assert "MB, at most 1 are meant to be needed" in result.failures[0]

    stalls = tmp_path / "stalls.py"
    stalls.write_text(
        'import time\nprint(\'["ready", "", 0.0, 0.0]\', flush=True)\ntime.sleep(600)\n'
    )
    monkeypatch.setattr(files, "_READER", stalls)
    monkeypatch.setattr(files, "GIVEN_UP_S", 0.2)
    result = files.read_files("npy", "array", random.Random(1), 1)

    assert "no answer in 0 s" in result.failures[0]
