# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Mutations of texts and of trees of values: any file that a person could write with an editor."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from fuzz.fuzz_terrain import mutate_bytes

Files = dict[str, bytes]
"""Bytes of files by their endings; the first one is read."""
Maker = Callable[[random.Random], Files]

ROOT = Path(__file__).parents[1]
ODD_VALUES: tuple[Any, ...] = (
    # numbers and constants
    None,
    True,
    False,
    0,
    -1,
    1,
    5,
    2**31,
    -(2**63),
    2**64,
    10**30,
    0.5,
    -0.0,
    1e308,
    -1e308,
    5e-324,
    # texts
    "",
    "x",
    "é",
    "\0",
    "a\nb",
    "x" * 5000,
    "../../etc/passwd",
    "/dev/zero",
    "1e400",
    "nan",
    "٣",
    "１２",
    "0x10",
    # containers
    [],
    {},
    [[]],
    [None],
    {"": 1},
    {"file": "/etc/passwd"},
    [1, 2, 3],
    [1e308] * 3,
    ["a"] * 3,
    list(range(2000)),
)
"""Values that take the place of others in a tree."""

_TEXT_TOKENS: tuple[str | bytes, ...] = (
    # numbers, and marks of an encoding
    "\ufeff",
    "٣",
    "１２",
    "1e400",
    "-1e400",
    "nan",
    ".inf",
    "-.inf",
    "9" * 5000,
    "\0",
    b"\xff\xfe",
    "\u2028",
    "\x85",
    # nesting, aliases and tags of YAML
    "{" * 3000,
    "[" * 3000,
    "- " * 3000,
    "&a [*a, *a]",
    "*a",
    "&a",
    "<<: *a",
    "!!int ''",
    "!!float _",
    "!!binary x",
    # dates and documents of YAML
    "!!timestamp 2001-01-01T99:00:00Z",
    "2001-01-01T99:00:00Z",
    "!!python/object:os.system x",
    "? ",
    "---\n",
    "...\n",
    # numbers of other bases, and punctuation
    "1:99:99",
    "0b",
    "0o8",
    "0x",
    "1_",
    "_",
    "=",
    "~",
    "|\n",
    ">\n",
    "\t",
    "'",
    '"',
    "\\",
    "#",
    ",,,",
    ";",
    "\r",
    # XML and its entities
    "<a>" * 2000,
    "<![CDATA[",
    "<!DOCTYPE r [<!ENTITY a 'b'>]>",
    "&a;",
    "&#0;",
    "<?xml encoding='utf-7'?>",
    "]]>",
    # what is cut, long or empty
    "\ud800",
    "1e",
    "--1",
    "+",
    ".",
    "0" * 400 + "1",
    "1" + "0" * 400,
    "true",
    "null",
    "\n",
    " " * 3000,
    "",
)
TOKENS = tuple(
    token if isinstance(token, bytes) else token.encode("utf-8", "surrogatepass")
    for token in _TEXT_TOKENS
)
"""Bytes that take the place of words in a text."""


def mutated_text(rng: random.Random, text: bytes) -> bytes:
    """Return odd tokens in place of words and between them, and damaged bytes."""
    for _ in range(rng.randint(1, 3)):
        words = [match.span() for match in re.finditer(rb"[^\s,:;<>\[\]{}\"]+", text)]
        start, end = rng.choice(words or [(0, 0)])
        token = rng.choice(TOKENS)
        rest = text[end:] if rng.random() < 0.7 else text[start:]
        text = text[:start] + token + rest

    return mutate_bytes(rng, text) if rng.random() < 0.3 else text


def mutated_tree(rng: random.Random, tree: Any) -> Any:
    """Return a copy in which a few values are odd, gone, moved or there twice."""
    tree = json.loads(json.dumps(tree))
    for _ in range(rng.randint(1, 3)):
        holders = list(_holders(tree))
        holder, key = rng.choice(holders) if holders else ([tree], 0)
        match rng.randrange(5):
            case 0 if isinstance(holder, dict):
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[rng.choice(("", "version", "file", "x" * 300, "٣"))] = holder.pop(key)
            case 2:
                _, other = rng.choice(holders) if holders else ([tree], 0)
                holder[key] = str(other)
            case 3 if isinstance(holder, list):
                holder *= rng.choice((0, 2, 100))
            case _:
                # a copy: else a later turn could put a list into itself
                holder[key] = copy.deepcopy(rng.choice(ODD_VALUES))

    return tree


def _holders(tree: Any) -> Any:
    """Yield (container, key or index) of every value in a tree."""
    if isinstance(tree, dict):
        pairs = list(tree.items())
    elif isinstance(tree, list):
        pairs = list(enumerate(tree))
    else:
        pairs = []

    for key, value in pairs:
        yield tree, key
        yield from _holders(value)


@cache
def shipped(path: str) -> bytes:
    """Return a file of the project."""
    return (ROOT / path).read_bytes()


@cache
def shipped_tree(path: str) -> Any:
    """Return a YAML file of the project, as JSON has it."""
    return json.loads(json.dumps(yaml.safe_load(shipped(path)), default=str))


def yaml_of(path: str) -> Maker:
    """Return mutations of a shipped YAML file.

    They are of its text, or of its tree, written as JSON, which is YAML too.
    """

    def make(rng: random.Random) -> Files:
        kind = rng.randrange(10)
        if kind == 0:
            return {".yaml": shipped(path)}
        if kind < 5:
            return {".yaml": mutated_text(rng, shipped(path))}

        tree = mutated_tree(rng, shipped_tree(path))
        text = json.dumps(tree, ensure_ascii=rng.random() < 0.5)
        return {".yaml": text.encode("utf-8", "surrogatepass")}

    return make


def text_of(ending: str, *texts: str) -> Maker:
    """Return mutations of one of these texts."""

    def make(rng: random.Random) -> Files:
        text = rng.choice(texts).encode()
        return {ending: text if rng.random() < 0.1 else mutated_text(rng, text)}

    return make
