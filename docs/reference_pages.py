# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Parts of pages of docs/reference that follow from code or data. Git has only what precedes them.

`make docs` appends them (docs/conf.py), and `python docs/reference_pages.py PAGE` prints one.
Commands come from the `rfly` application, messages from msg/, srv/ and action/, parameters from the
dataclasses that declare them, models from their list, reasons from their enum,
topics and the fault matrix from tables next to their pages.
"""

from __future__ import annotations

import ast
import csv
import importlib
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

from fault_matrix_page import fault_matrix_page
from measurements_page import measurements_page

from rfly_common.ros.node_parameters import TYPE_NAMES, Parameter, parameters_of

ROOT = Path(__file__).resolve().parents[1]
_WORDS = {int: "INTEGER", float: "NUMBER", Path: "FILE"}

# --- commands


def commands_page() -> str:
    """Return every command of `rfly` with its arguments and options."""
    from rfly_bringup.cli.main import command

    return "\n".join(_command_sections(command(), "rfly"))


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
    lines = []
    for kind, heading in (
        ("msg", "Messages"),
        ("srv", "Services"),
        ("action", "Actions"),
    ):
        lines += [f"## {heading}", ""]
        for file in sorted((ROOT / kind).glob(f"*.{kind}")):
            text = file.read_text(encoding="utf-8").strip("\n")
            lines += [
                f"### rfly_suite/{kind}/{file.stem}",
                "",
                "```text",
                text,
                "```",
                "",
            ]
    return "\n".join(lines)


# --- parameters


def parameters_page() -> str:
    """Return the tables of all nodes' parameters. It needs no ROS."""
    from rfly_bringup.nodes.entry_points import MODULES

    sections = []
    for node, module in MODULES.items():
        groups = importlib.import_module(module.rpartition(".")[0] + ".node_parameters").NODES[node]
        sections.append(f"## {node}\n\n" + "\n".join(_parameter_rows(groups)) + "\n")
    return "\n".join(sections)


def _parameter_rows(groups: tuple[type, ...]) -> Iterator[str]:
    yield "| parameter | type | default | allowed | meaning |"
    yield "| --- | --- | --- | --- | --- |"
    for group in groups:
        for each in parameters_of(group):
            name = getattr(group, "PREFIX", "") + each.name
            meaning = each.description + (" (*changeable*)" if each.changeable else "")
            cells = (
                f"`{name}`",
                TYPE_NAMES[each.type],
                _parameter_default(each),
                _allowed(each),
                meaning,
            )
            escaped = (cell.replace("|", "&#124;").replace("<", "&lt;") for cell in cells)
            yield f"| {' | '.join(escaped)} |"


def _parameter_default(each: Parameter) -> str:
    if each.shown:
        return each.shown
    if each.type is float:
        return f"{each.default:g}" if abs(each.default) >= 1e6 else str(each.default)
    if each.type is bool:
        return str(each.default).lower()
    if isinstance(each.default, list):
        return f"[{', '.join(map(str, each.default))}]"
    return str(each.default) or '""'


def _allowed(each: Parameter) -> str:
    if each.choices:
        return ", ".join(each.choices)
    if each.low is None and each.high is None:
        return ""
    if each.high is None:
        return f"≥ {each.low:g}"
    if each.low is None:
        return f"≤ {each.high:g}"
    return f"{_number(each.low)} … {_number(each.high)}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


# --- models


def models_page() -> str:
    """Return the models of RflySim3D that have a name, from their list."""
    from rfly_common.config.vehicle_models import vehicle_models

    lines = [
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
    return "\n".join(lines) + "\n"


# --- topics


def topics_page() -> str:
    """Return a table of each node's topics, services and actions, from the table of all nodes."""
    with (ROOT / "docs" / "reference" / "topics.csv").open(encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table))

    sections = []
    for node, own in itertools.groupby(rows, lambda row: row["node"]):
        lines = [
            f"| {row['does']} | `{row['name']}` | {row['type']} | {row['qos']} |" for row in own
        ]
        heading = ("| | name | type | QoS |", "| --- | --- | --- | --- |")
        sections.append("\n".join((f"## {node}\n", *heading, *lines)) + "\n")
    return "\n".join(sections)


# --- reasons on /diagnostics


def reasons_page() -> str:
    """Return the codes of a status's reasons, from the docstrings of their enum."""
    from rfly_common import diagnostic_reasons

    tree = ast.parse(inspect.getsource(diagnostic_reasons.Reason))
    lines = ["| reason | meaning | subject |", "| --- | --- | --- |"]
    for code, text in itertools.pairwise(tree.body[0].body):  # type: ignore[attr-defined]
        if isinstance(code, ast.Assign):
            meaning, _, subject = text.value.value.partition(" Subject: ")
            cells = (ast.literal_eval(code.value), meaning.rstrip("."), subject.rstrip("."))
            lines.append("| `{}` | {} | {} |".format(*cells))
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "cli": commands_page,
    "fault-matrix": fault_matrix_page,
    "measurements": measurements_page,
    "messages": messages_page,
    "models": models_page,
    "parameters": parameters_page,
    "reasons": reasons_page,
    "topics": topics_page,
}
"""Functions that return the generated part of a page, by its name in docs/reference."""


def full_page(page: Path) -> str:
    """Return the text of a Markdown page in git, with its generated part if it has one."""
    text = page.read_text(encoding="utf-8")
    generated = PAGES.get(page.stem) if page.parent.name == "reference" else None
    return f"{text}\n{generated()}" if generated else text


if __name__ == "__main__":
    if sys.argv[1:] not in [[name] for name in PAGES]:
        sys.exit(f"reference_pages.py: expected a page: {', '.join(PAGES)}")
    print(full_page(ROOT / "docs" / "reference" / f"{sys.argv[1]}.md"), end="")
