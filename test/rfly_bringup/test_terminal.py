# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Foreign text is printed without effects on the terminal."""

from __future__ import annotations

import pytest

from rfly_bringup.terminal import printable, progress_bar, time_left


def test_what_a_terminal_acts_on_is_spelt_out():
    assert printable("hawk läuft, 47° → 3 m²") == "hawk läuft, 47° → 3 m²"
    assert printable("\x1b]0;title\x07\x1b[2J") == r"\x1b]0;title\x07\x1b[2J"
    assert printable("a\nb\tc\x9b\u202egnp.exe") == r"a\nb\tc\x9b\u202egnp.exe"


@pytest.mark.parametrize(
    ("share", "elapsed_s", "text"),
    [
        (0.0, 5.0, ""),
        (0.25, 20.0, ", about 60 s left"),  # 20 s a quarter
        (0.1, 40.0, ", about 6 min left"),  # 9 × 40 s
        (1.0, 40.0, ", about 0 s left"),
    ],
)
def test_the_time_left_is_that_of_the_pace_so_far(share, elapsed_s, text):
    assert time_left(share, elapsed_s) == text


def test_long_work_says_in_a_log_how_long_it_will_take(capsys):
    """It is silent for two seconds, and then says one line each five seconds."""
    times = iter((0.0, 1.0, 2.0, 6.9, 7.0))
    with progress_bar("compiling", says=True, clock=lambda: next(times)) as bar:
        for share in (0.01, 0.1, 0.3, 0.5):
            bar(share)
    assert capsys.readouterr().err == (
        "rfly: compiling: 10%, about 18 s left\nrfly: compiling: 50%, about 7 s left\n"
    )
