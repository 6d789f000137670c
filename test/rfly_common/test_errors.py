"""The tree of exceptions that `rfly_common.errors` draws."""

from __future__ import annotations

import inspect
import re

from rfly_common import errors

_LINE = re.compile(r"^    (?P<branches>[│├└─ ]*)(?P<name>[A-Z]\w+)(?: \((?P<builtin>\w+)\))?", re.M)
_INDENT = 4
"""Columns of one level of the drawing."""


def drawn_tree():
    """Name -> (its parent's name, the built-in exception in brackets), from the drawing."""
    tree = {}
    above = []
    for line in _LINE.finditer(errors.__doc__):
        level = len(line["branches"]) // _INDENT
        del above[level:]
        tree[line["name"]] = (above[-1] if above else "Exception", line["builtin"])
        above.append(line["name"])
    return tree


def defined_tree():
    """The same of the classes; a private base is skipped, what it inherits counts."""
    tree = {}
    for name, cls in vars(errors).items():
        if not inspect.isclass(cls) or name.startswith("_"):
            continue
        ancestors = [base for base in cls.__mro__[1:] if not base.__name__.startswith("_")]
        parent = ancestors[0]
        added = [
            base.__name__
            for base in ancestors
            if base.__module__ == "builtins" and not issubclass(parent, base)
        ]
        tree[name] = (parent.__name__, added[0] if added else None)
    return tree


def test_the_drawing_shows_each_error_below_its_base():
    assert drawn_tree() == defined_tree()
