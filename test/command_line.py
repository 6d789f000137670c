# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""`rfly` in this process, for what ends before it begins."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import pytest


def mistake(
    words: Iterable[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> str:
    """The one line that a mistyped command prints, with exit code 2."""
    from rfly_bringup.cli.main import main

    monkeypatch.setattr(sys, "argv", ["rfly", *words])
    with pytest.raises(SystemExit) as end:
        main()
    line = capsys.readouterr().err
    assert end.value.code == 2
    assert line.startswith("rfly: ")
    assert line.count("\n") == 1
    return line
