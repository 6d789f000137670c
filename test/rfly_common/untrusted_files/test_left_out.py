# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""The line on what a reader leaves out."""

from __future__ import annotations

from rfly_common.untrusted_files.reader_errors import LeftOut


def test_the_line_has_the_counts_and_first_reasons_of_the_most_frequent_kinds():
    left_out = LeftOut()
    assert left_out.text() == ""
    left_out["not_udp"] += 2
    left_out.add("/a", "it is\ncut", 3)
    left_out.add("/a", "another reason")
    assert left_out.text() == "left out: /a (4; the first: it is cut), not udp (2)"
    left_out.clear()
    left_out.add("/a", "a third")
    assert left_out.text() == "left out: /a (1; the first: a third)"


def test_a_file_of_many_topics_and_long_texts_fills_no_screen():
    left_out = LeftOut()
    for number in range(1000):
        left_out.add(f"/{number}/" + 1000 * "x", 1000 * "y")
    text = left_out.text()
    assert text.endswith(", 992 other kinds")
    assert len(text) < 8 * (2 * 200 + 30) + 30
