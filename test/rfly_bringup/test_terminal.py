# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Foreign text is printed without effects on the terminal."""

from __future__ import annotations

from rfly_bringup.terminal import printable


def test_what_a_terminal_acts_on_is_spelt_out():
    assert printable("hawk läuft, 47° → 3 m²") == "hawk läuft, 47° → 3 m²"
    assert printable("\x1b]0;title\x07\x1b[2J") == r"\x1b]0;title\x07\x1b[2J"
    assert printable("a\nb\tc\x9b\u202egnp.exe") == r"a\nb\tc\x9b\u202egnp.exe"
