"""YAML parameter files: shipped sets by name, files by path, checked against a JSON schema."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rfly_amphibious.vehicle.key_changes import Change, KeyPath, changed
from rfly_common.config import documents
from rfly_common.config.marked_yaml import Document

MAX_FILE_BYTES = 1_000_000


def shipped_sets(folder: str) -> list[str]:
    """Names of the sets in a folder of `data`."""
    return documents.shipped_names("rfly_amphibious", folder)


def read_parameters(what: str, folder: str, name_or_path: str | os.PathLike[str]) -> tuple[bytes, str, str]:
    """(content, what errors call the file, name of the set) of a shipped set or a file.

    Raises ConfigError that begins with `what`.
    """
    return documents.read_config(what, "rfly_amphibious", folder, name_or_path, MAX_FILE_BYTES)


def checked_document(
    data: bytes,
    file: str,
    schema: Mapping[str, Any],
    keys: str,
    changes: Sequence[Change] = (),
    absent: Mapping[KeyPath, Any] | None = None,
) -> Document:
    """The document of a file's content, with the changes (`key_changes.changed`), which fits the schema.

    `keys`: what a file begins with, for the error of one that has no keys at all. Raises ConfigError that names file,
    line and key.
    """
    document = documents.parse_mapping(data, file, f"{keys}, …")
    if changes:
        document = changed(document, changes, absent)
    documents.check_schema(document, file, schema)
    return document


def load_schema(name: str) -> Mapping[str, Any]:
    """A schema of this package by its name."""
    return documents.load_schema("rfly_amphibious", name)
