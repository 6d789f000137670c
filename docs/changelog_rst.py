# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""CHANGELOG.rst, ROS's form of CHANGELOG.md (REP 132); `python docs/reference_pages.py` writes it.

bloom and catkin_pkg read it: a section for each version with its date, and lists in it. They skip
sections in sections, so "Added" and the like are paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

_INLINE = re.compile(
    r"(?P<before>\w?)(?:"
    r"`(?P<code>[^`]+)`"
    r"|\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)"
    r"|\*(?P<emphasis>[^*\s][^*]*)\*"
    r")(?P<after>\w?)"
)
"""Markdown's inline markup in the changelog, with a letter that touches it."""
_SPECIAL = re.compile(r"[\\*|]|(?<=\w)_(?!\w)")
"""Characters of plain text that begin or end markup in reStructuredText."""


def changelog_rst() -> str:
    """Return CHANGELOG.md as reStructuredText, from its first version on."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return "\n".join(_lines(text[text.index("\n## ") + 1 :]))


def _lines(text: str) -> Iterator[str]:
    title = "Changelog for package rfly_suite"
    yield from ("^" * len(title), title, "^" * len(title), "")
    yield from (".. From CHANGELOG.md, by docs/reference_pages.py. Edit that file.", "")

    for line in _markup(text).split("\n"):
        version = re.fullmatch(r"## \[(\S+)\](?: - (\S+))?", line)
        if version:
            name = f"{version[1]} ({version[2]})" if version[2] else "Forthcoming"
            yield from (name, "-" * len(name))
        elif line.startswith("### "):
            yield f"{line.removeprefix('### ')}:"
        else:
            yield re.sub(r"^( *)- ", r"\1* ", line)


def _markup(text: str) -> str:
    """Return the text with reStructuredText's inline markup; the lines stay."""
    parts = []
    end = 0
    for found in _INLINE.finditer(text):
        parts += [_plain(text[end : found.start()]), _converted(found)]
        end = found.end()
    return "".join([*parts, _plain(text[end:])])


def _converted(found: re.Match[str]) -> str:
    if found["code"]:
        markup = f"``{found['code']}``"
    elif found["text"]:
        markup = f"`{found['text']} <{found['target']}>`__"
    else:
        markup = f"*{found['emphasis']}*"

    # an escaped space shows nothing, and ends a word
    before = f"{found['before']}\\ " if found["before"] else ""
    after = f"\\ {found['after']}" if found["after"] else ""
    return before + markup + after


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)
