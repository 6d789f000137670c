# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Pages of docs/reference that follow from the code; `python docs/reference_pages.py` writes them.

So does the list of shapes in the schema of fleet files.

Commands come from the `rfly` application, messages from msg/, srv/ and action/, topics from the
running nodes.
"""

from __future__ import annotations

import inspect
import re
import textwrap
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


# --- schema of fleet files

FLEET_SCHEMA = ROOT / "rfly_trajectory" / "data" / "schemas" / "fleet.schema.json"


def fleet_schema() -> str:
    """Return the schema of fleet files, with the shapes that the classes of the code are.

    The keys of each shape stand in the schema itself, as a definition with the shape's name.
    """
    from rfly_trajectory.fleet.fleet_file import shape_types

    rule = (
        '        {"if": {"required": ["type"], "properties": {"type": {"const": "NAME"}}}, '
        '"then": {"$ref": "#/definitions/NAME"}}'
    )
    rules = [rule.replace("NAME", name) for name in shape_types()]
    names = ", ".join(f'"{name}"' for name in shape_types())
    before, start, rest = FLEET_SCHEMA.read_text(encoding="utf-8").partition('    "shape": {\n')
    shape, end, after = rest.partition("\n      ]\n    },\n")
    head = shape.partition('      "properties"')[0]
    shape = (
        f'{head}      "properties": {{"type": {{"enum": [{names}]}}}},\n'
        '      "allOf": [\n' + ",\n".join(rules)
    )
    return before + start + shape + end + after


# --- models


def models_page() -> str:
    """Return the models of RflySim3D that have a name, from their list."""
    from rfly_common.config.vehicle_models import vehicle_models

    lines = [
        "# Models",
        "",
        _paragraph(
            "Names of RflySim3D's models, from `rfly_common/data/vehicle_models.yaml`. Fleets, "
            "placements and worlds take a name or a number as `type`; so do `rfly objects place`, "
            "`rfly listen --type`, `PlaceObject` and `rfly://NAME` of the spawn services. Capitals "
            "do not count."
        ),
        "",
        _paragraph(
            "Numbers that the list lacks are sent as they are. A class's further models have the "
            "number DisplayOrder · 10000 + ClassID; the full edition's manual has · 100000. Both "
            "are read as looks of their class: 100050 is a car. Key F2 in RflySim3D's window "
            "writes `ModelData.csv`, the complete list of an installation."
        ),
        "",
        "| name | also | type | ClassID | DisplayOrder | look in `rfly view` | source |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for model in vehicle_models():
        cells = [
            f"`{model.name}`",
            ", ".join(f"`{alias}`" for alias in model.aliases),
            str(model.vehicle_type),
            str(model.class_id),
            str(model.display_order or ""),
            model.look or "marker with its name",
            model.source,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    lines += [
        "",
        _paragraph(
            "Sources: *manual*: the SDK's manual of July 2025; *scripts*: public scripts of users, "
            "of which the manual says nothing; *suite*: this project's own numbers."
        ),
    ]
    return "\n".join(lines) + "\n"


def _paragraph(text: str) -> str:
    return textwrap.fill(text, 110, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    from measurements_page import measurements_page
    from parameters_page import parameters_page
    from topics_page import topics_page

    pages = {
        "cli": commands_page,
        "measurements": measurements_page,
        "messages": messages_page,
        "models": models_page,
        "parameters": parameters_page,
        "topics": topics_page,
    }
    for name, page in pages.items():
        (FOLDER / f"{name}.md").write_text(page(), encoding="utf-8")
    FLEET_SCHEMA.write_text(fleet_schema(), encoding="utf-8")
