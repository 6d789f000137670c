# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pages of docs/reference that follow from the code; `python docs/reference_pages.py` writes them.

It also writes CHANGELOG.rst from CHANGELOG.md.

Commands come from the `rfly` application, messages from msg/, srv/ and action/, topics from the
running nodes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
_WORDS = {int: "INTEGER", float: "NUMBER", Path: "FILE"}

# --- commands


def commands_page() -> str:
    """Return every command of `rfly` with its arguments and options."""
    import typer

    from rfly_bringup.cli.main import app

    lines = [
        "# Commands",
        "",
        "What `rfly --help` and `rfly COMMAND --help` say, on one page.",
        "",
    ]
    lines += _command_sections(typer.main.get_command(app), "rfly")
    return "\n".join(lines)


def _command_sections(command: Any, name: str) -> Iterator[str]:
    children = getattr(command, "commands", {})

    if name != "rfly":
        prose, *examples = re.split(
            r"Examples?:", (command.help or "").replace("\b", ""), maxsplit=1
        )
        yield from (f"## {name}", "", _escaped(prose), "")

        shown = [f"    {line.strip()}" for line in "".join(examples).splitlines() if line.strip()]
        yield from (*shown, "") if shown else ()
        if not children or command.invoke_without_command:
            types = _types(command)
            rows = [
                _row(each, types.get(each.name)) for each in command.params if each.name != "help"
            ]
            yield from (
                "| argument or option | default | meaning |",
                "| --- | --- | --- |",
                *rows,
                "",
            )

    for child in sorted(children):
        yield from _command_sections(children[child], f"{name} {child}")


def _types(command: Any) -> dict[str, Any]:
    """Return the types that the command's function declares, by parameter.

    Typer's own descriptions differ from version to version.
    """
    function = inspect.unwrap(command.callback)
    declared = {
        each.name: each.annotation for each in inspect.signature(function).parameters.values()
    }
    return declared | get_type_hints(function)


def _row(each: Any, kind: Any) -> str:
    bare = (
        next((part for part in get_args(kind) if part is not type(None)), kind)
        if _is_optional(kind)
        else kind
    )
    choices = (
        [str(item.value) for item in bare]
        if isinstance(bare, type) and issubclass(bare, Enum)
        else []
    )

    value = each.metavar or "|".join(choices) or _WORDS.get(bare, "TEXT")
    if each.param_type_name == "argument":
        name = value if each.metavar else each.name.upper()
        needed = "required" if each.required else ""
        return f"| `{_in_table(name)}` | {needed} | {_escaped(each.help or '')} |"

    name = ", ".join([*each.opts, *each.secondary_opts]) + ("" if each.is_flag else f" {value}")
    return f"| `{_in_table(name)}` | {_escaped(_default(each))} | {_escaped(each.help or '')} |"


def _is_optional(kind: Any) -> bool:
    return type(None) in get_args(kind)


def _default(each: Any) -> str:
    value = each.default
    if each.required:
        return "required"
    if isinstance(value, bool):
        return (each.opts if value else each.secondary_opts)[0] if each.secondary_opts else ""
    if value is None or callable(value) or not each.show_default or value in ("", (), []):
        return ""
    return (
        each.show_default
        if isinstance(each.show_default, str)
        else str(getattr(value, "value", value))
    )


def _in_table(code: str) -> str:
    return code.replace("|", "\\|")


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


# --- messages


def messages_page() -> str:
    """Return every interface of rfly_suite, as its file states it."""
    lines = [
        "# Messages, services, actions",
        "",
        "The files of `msg/`, `srv/` and `action/`, with units and frames.",
    ]
    for kind, heading in (
        ("msg", "Messages"),
        ("srv", "Services"),
        ("action", "Actions"),
    ):
        lines += ["", f"## {heading}"]
        for file in sorted((ROOT / kind).glob(f"*.{kind}")):
            text = file.read_text(encoding="utf-8").strip("\n")
            lines += [
                "",
                f"### rfly_suite/{kind}/{file.stem}",
                "",
                "```text",
                text,
                "```",
            ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    from changelog_rst import changelog_rst
    from parameters_page import parameters_page
    from topics_page import topics_page

    pages = {
        "cli": commands_page,
        "messages": messages_page,
        "parameters": parameters_page,
        "topics": topics_page,
    }
    for name, page in pages.items():
        (FOLDER / f"{name}.md").write_text(page(), encoding="utf-8")
    (ROOT / "CHANGELOG.rst").write_text(changelog_rst(), encoding="utf-8")
