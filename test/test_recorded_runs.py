# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Records of runs: computed once, not trusted when damaged, and forgotten with their sources."""

from __future__ import annotations

import os

import pytest
import recorded_runs
from recorded_runs import KEPT, recorded


@pytest.fixture
def twice(tmp_path, monkeypatch):
    """A run that counts how often it is computed."""
    monkeypatch.setattr(recorded_runs, "FOLDER", tmp_path)
    monkeypatch.setattr(recorded_runs, "sources_digest", lambda: "these")

    def twice(number):
        twice.computed += 1
        return 2 * number

    twice.computed = 0
    return twice


def test_a_run_is_computed_once_for_the_same_arguments(twice):
    assert [recorded(twice, 3), recorded(twice, 3), recorded(twice, 4)] == [6, 6, 8]
    assert twice.computed == 2


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"", lambda data: b"x"])
def test_a_damaged_record_is_computed_anew(twice, tmp_path, damage):
    recorded(twice, 3)
    (record,) = (tmp_path / "these").iterdir()
    record.write_bytes(damage(record.read_bytes()))
    assert [recorded(twice, 3), recorded(twice, 3)] == [6, 6]
    assert twice.computed == 2


def test_other_sources_have_other_records(twice, monkeypatch):
    recorded(twice, 3)
    monkeypatch.setattr(recorded_runs, "sources_digest", lambda: "others")
    recorded(twice, 3)
    assert twice.computed == 2


def test_the_digest_is_that_of_every_file_of_the_product(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded_runs, "ROOT", tmp_path)
    monkeypatch.setattr(recorded_runs, "FOLDER", tmp_path / "build")
    data = tmp_path / "rfly_common" / "data"
    data.mkdir(parents=True)
    digests = set()
    for content in ("mass: 1\n", "mass: 2\n", "mass: 1\n"):
        (data / "a.yaml").write_text(content)
        digests.add(recorded_runs.sources_digest.__wrapped__())
    assert len(digests) == 2


def test_records_of_other_sources_are_removed_after_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(recorded_runs, "FOLDER", tmp_path)
    for name, age in (("new", KEPT - 3600.0), ("old", KEPT + 3600.0), ("these", KEPT + 3600.0)):
        (tmp_path / name).mkdir()
        time = (tmp_path / name).stat().st_mtime - age
        os.utime(tmp_path / name, (time, time))
    recorded_runs.remove_others("these")
    assert {path.name for path in tmp_path.iterdir()} == {"new", "these"}
