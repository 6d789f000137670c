# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""XML of unknown origin as a stream of elements: no document type, no entities, limited sizes."""

from __future__ import annotations

from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from rfly_common.errors import ConfigError
from rfly_common.untrusted_files.reader_errors import reader_errors

MAX_DEPTH = 100
"""Levels of elements in each other."""


class XmlElements:
    """A parser's target that counts elements.

    A subclass overrides `opened`, `data` and `closed`, and keeps what it needs.
    """

    def __init__(self, name: str, max_elements: int) -> None:
        self.name = name
        """Name that errors begin with."""
        self._open: list[str] = []
        """Tags of the elements around the current one, without their namespace."""
        self._max_elements = max_elements
        self._elements = 0
        self._parser = DefusedXMLParser(
            target=self, forbid_dtd=True, forbid_entities=True, forbid_external=True
        )

    def read(self, data: bytes) -> None:
        """Read a whole file. Raises ConfigError with the line."""
        try:
            with reader_errors(lambda text: self.error(f"cannot be read as XML: {text}")):
                self._parser.feed(data)
                self._parser.close()
        except ConfigError as error:
            if isinstance(error.__cause__, ParseError):
                line = error.__cause__.position[0]
                raise ConfigError(f"{self.name}:{line}: not valid XML: {error.__cause__}") from None
            if isinstance(error.__cause__, DefusedXmlException):
                raise self.error("document types and entities are not taken") from None
            raise

    def error(self, what: str) -> ConfigError:
        """Return an error with the line that is being read."""
        return ConfigError(f"{self.name}:{self._parser.parser.CurrentLineNumber}: {what}")

    def opened(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the begin of an element, the last of `_open`."""

    def closed(self, tag: str) -> None:
        """Handle the end of an element; the last of `_open` is the one around it."""

    def data(self, text: str) -> None:
        """Handle a piece of the text in an element."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Count an element that begins. The parser calls this."""
        self._open.append(tag.rpartition("}")[2])
        self._elements += 1
        if self._elements > self._max_elements:
            raise self.error(f"more than {self._max_elements:,} elements")
        if len(self._open) > MAX_DEPTH:
            raise self.error(f"nested more than {MAX_DEPTH} elements deep")
        self.opened(self._open[-1], attributes)

    def end(self, tag: str) -> None:
        """Leave an element. The parser calls this."""
        self.closed(self._open.pop())

    def close(self) -> None:
        """Do nothing at the end of the document. The parser calls this."""
