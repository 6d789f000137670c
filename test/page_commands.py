# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Commands and code blocks of the documents' pages, and `rfly` called as a user calls it."""

from __future__ import annotations

import functools
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from rfly_bringup.cli.main import app, main

ROOT = Path(__file__).resolve().parents[1]


def fenced(page: Path, language: str) -> list[str]:
    """The blocks of a language."""
    return re.findall(
        rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )


def shell_lines(page: Path, program: str) -> list[list[str]]:
    """Return the words of each indented or fenced line that begins with the program (a pattern).

    Comments are left out.
    """
    code = re.findall(
        rf"^(?: {{4,}})?({program} .*)$", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    return [shlex.split(line, comments=True) for line in code]


def run(line: list[str], monkeypatch: Any, capsys: Any) -> tuple[int, str]:
    """Exit code and standard error of an `rfly` line, in this process."""
    monkeypatch.setattr(sys, "argv", line)
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0), capsys.readouterr().err


def parse(line: list[str]) -> None:
    """Read the line with the real command's arguments and options, but do not run it."""
    command, called = _parser()
    called.clear()
    command.main(line[1:], prog_name="rfly", standalone_mode=False)
    assert called, " ".join(line)


@functools.cache
def _parser() -> tuple[Any, list[dict[str, Any]]]:
    """Return a command line that only notes the options with which a command would be called."""
    called: list[dict[str, Any]] = []

    def only_parse(group: Any) -> None:
        for command in getattr(group, "commands", {}).values():
            if hasattr(command, "commands"):
                only_parse(command)
            if not hasattr(command, "commands") or command.invoke_without_command:
                command.callback = lambda **options: called.append(options)

    command = typer.main.get_command(app)
    only_parse(command)
    return command, called
