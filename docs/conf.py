# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Configuration of Sphinx: docs/ and the public names' reference as a site, by `make docs`."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
from enum import Enum
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from reference_pages import PAGES, full_page  # noqa: E402

project = "rfly_suite"
html_theme = "furo"
html_title = "rfly_suite"
html_copy_source = False
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_heading_anchors = 4
highlight_language = "none"  # indented blocks are commands, numbers and formulas
autodoc_default_options = {
    "members": True,
    "imported-members": True,
    "inherited-members": "BaseException,Enum,IntEnum,OSError,int,tuple",
}
autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
autodoc_type_aliases = {
    name: name for name in ("ArrayLike", "Floats", "OptionalArray", "Scalar", "StrPath")
}
toc_object_entries_show_parents = "hide"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = True
maximum_signature_line_length = 90
python_use_unqualified_type_names = True

log = logging.getLogger(__name__)  # a warning fails `make docs`


def as_rst(text: list[str]) -> list[str]:
    """Return a docstring's Markdown as reStructuredText.

    The Markdown consists of code in backticks, indented blocks and lists.
    """
    lines: list[str] = []
    in_block = False
    for line in text:
        indented = line.startswith("    ")
        if indented and not in_block and (not lines or not lines[-1].strip()):
            lines += ["::", ""]
            in_block = True
        elif line.strip() and not indented:
            in_block = False
        lines.append(line if in_block else _inline(line))
    return lines


def _inline(line: str) -> str:
    parts = re.split(r"(`+)(.+?)\1", line)
    for i in range(0, len(parts), 3):
        parts[i] = re.sub(r"([*|\\])|(?<=\w)(_)(?!\w)", r"\\\1\2", parts[i])
    for i in range(1, len(parts), 3):
        name = re.fullmatch(r"[A-Za-z_][\w.]*", parts[i + 1])
        parts[i], parts[i + 1] = (
            "",
            rf"\ :py:obj:`{parts[i + 1]}`\ " if name else rf"\ ``{parts[i + 1]}``\ ",
        )
    return "".join(parts)


def public_constants(app: Sphinx) -> None:
    """Give autodoc the docstrings of public constants, which are next to their definitions."""
    for stub in ROOT.glob("rfly_*/__init__.pyi"):
        package = stub.parent.name
        face = ModuleAnalyzer.for_module(package)
        face.analyze()
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            assert isinstance(node, ast.ImportFrom)
            name = node.names[0].name

            member = getattr(importlib.import_module(package), name)
            if not (callable(member) or inspect.ismodule(member)):
                docstring = (
                    ModuleAnalyzer.for_module(str(node.module)).find_attr_docs().get(("", name))
                )
                if docstring is None:
                    log.warning("%s.%s: a public constant without a docstring", package, name)
                face.attr_docs["", name] = docstring or [""]


def is_left_out(
    app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Warn of public names without a docstring.

    Names that another package's page describes are left out.
    """
    home = str(getattr(member, "__module__", "")).partition(".")[0]
    elsewhere = home.startswith("rfly_") and app.env.docname != f"api/{home}"
    if what == "module" and elsewhere and name in importlib.import_module(home).__all__:
        return True

    function = member.fget if isinstance(member, property) else member
    ours = callable(function) and str(getattr(function, "__module__", "")).startswith("rfly_")
    if skip and ours and not name.startswith("_"):
        log.warning("%s: a public name without a docstring", function.__qualname__)
    return False if isinstance(member, Enum) else None


def markdown_docstring(
    app: Sphinx, what: str, name: str, member: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = as_rst(lines)


def short_types(
    app: Sphinx,
    what: str,
    name: str,
    member: Any,
    options: Any,
    signature: str | None,
    result: str | None,
) -> tuple[str | None, str | None]:
    """Shorten NDArray[float64] and ArrayLike to the names in the source."""

    def short(text: str) -> str:
        text = re.sub(
            r"[\w.~]*ndarray\[tuple\[[\w.~]*Any, \.\.\.\], [\w.~]*dtype\[([^]]+)\]\]",
            r"NDArray[\1]",
            text,
        )
        return re.sub(r"[\w.~]*TypeAliasForwardRef\('(\w+)'\)", r"\1", text)

    return signature and short(signature), result and short(result)


def append_generated_part(app: Sphinx, docname: str, source: list[str]) -> None:
    """Give the pages of docs/reference what follows from code or data."""
    source[0] = full_page(Path(app.env.doc2path(docname)))


def generated_pages(app: Sphinx, *changes: Any) -> list[str]:
    """Return the pages that are built anew, whether or not their files have changed."""
    return [f"reference/{name}" for name in PAGES]


def setup(app: Sphinx) -> None:
    app.connect("source-read", append_generated_part)
    app.connect("env-get-outdated", generated_pages)
    app.connect("builder-inited", public_constants)
    app.connect("autodoc-skip-member", is_left_out)
    app.connect("autodoc-process-signature", short_types)
    app.connect("autodoc-process-docstring", markdown_docstring)
