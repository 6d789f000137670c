# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's vehicle XML: safe reading, and correction of the ground offset.

<CenterHeightAboveGroundCm> of <vehicle>/<body> is corrected in place: comments, layout, line ends
and encoding stay, every other byte is the one that was there. The file is text for people, so it is
edited as text; the parser only finds the place. No document type, entity or external reference is
taken (defusedxml), and no file above MAX_BYTES.
"""

from __future__ import annotations

import codecs
import difflib
import itertools
import math
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from rfly_common.errors import VehicleXmlError
from rfly_common.files import StrPath, open_regular, write_whole

MAX_BYTES = 1_000_000
"""RflySim's own descriptions have a few thousand"""
MAX_DEPTH = 100
MAX_HEIGHT_CM = 1e6
MAX_SCALE = 1e4
ELEMENT = "CenterHeightAboveGroundCm"
_PLACE = ("vehicle", "body", ELEMENT)

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UTF32_BOMS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]*)["']""")
_CHINESE = {
    "gb2312",
    "gbk",
    "gb18030",
}  # files that say the first often hold the second; the third reads both
_EIGHT_BIT = {"utf-8", "ascii", "big5", "shift_jis", "euc_jp", "euc_kr", "koi8-r"}
_EIGHT_BIT |= {f"iso8859-{part}" for part in range(1, 17)} | {f"cp125{page}" for page in range(9)}

_START_TAG = re.compile(r"""<[^\s/>]+(?:\s+[^\s=>]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*(/?)>""")
_MARKUP = re.compile(r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[|\]\]>", re.DOTALL)


@dataclass(frozen=True)
class _Element:
    """A piece of the text: from its start tag's `<` to behind its end tag's `>`."""

    path: tuple[str, ...]
    text: str
    start: int
    content: int
    """Position behind the start tag."""
    content_end: int
    end: int
    empty_tag: bool
    """True for <tag/>."""


@dataclass(frozen=True)
class VehicleXml:
    """A description as it lies in its file, with its values.

    `parse_vehicle_xml` and `read_vehicle_xml` make it.
    """

    file: str
    text: str
    """Text of the whole file, without byte order mark."""
    encoding: str
    bom: bytes
    class_id: int | None
    """vehicleType of the packets; None if the file does not give it."""
    name: str
    center_height_cm: float | None
    """Height of the model's centre above the ground, cm.

    None if the element is missing or empty.
    """
    scale: tuple[float, float, float] | None
    """Factors of the model's size along its axes; None if the file does not give them."""
    _elements: tuple[_Element, ...]

    def encode(self) -> bytes:
        """Return the file's bytes."""
        return self.bom + self.text.encode(self.encoding)

    def with_center_height(self, height_cm: float) -> VehicleXml:
        """Return the description with this height and everything else unchanged.

        A missing element is added at the end of <body>. Raises VehicleXmlError for a number that is
        not finite or above MAX_HEIGHT_CM, and for a file without <body>.
        """
        if not abs(height_cm) <= MAX_HEIGHT_CM:  # false for NaN too
            raise VehicleXmlError(
                f"{ELEMENT}: {height_cm} cm, expected a number of at most {MAX_HEIGHT_CM:.0f}"
            )
        number = _in_words(height_cm)
        found = _at(self._elements, _PLACE)
        start, end, new = (
            self._insertion(number) if found is None else self._replacement(found, number)
        )
        return parse_vehicle_xml(
            (self.text[:start] + new + self.text[end:]).encode(self.encoding),
            self.file,
            self.bom,
        )

    def _replacement(self, element: _Element, number: str) -> tuple[int, int, str]:
        """(start, end, new text) of what changes."""
        if element.empty_tag:
            tag = self.text[element.start : element.end]
            return (
                element.start,
                element.end,
                f"{tag[:-2].rstrip()}>{number}</{ELEMENT}>",
            )
        inside = self.text[element.content : element.content_end]
        # blanks in place of comments and CDATA marks: what is left is the number, where it stands
        bare = _MARKUP.sub(lambda mark: " " * len(mark[0]), inside)
        token = re.search(r"\S+", bare)
        if token is None:
            return element.content_end, element.content_end, number
        return element.content + token.start(), element.content + token.end(), number

    def _insertion(self, number: str) -> tuple[int, int, str]:
        body = _at(self._elements, _PLACE[:2])
        if body is None or body.empty_tag:
            what = (
                "there is no <body>"
                if body is None
                else f"line {_line_of(self.text, body.start)}: <body/> is empty"
            )
            raise VehicleXmlError(
                f"{self.file}: {what}, so that {ELEMENT} has no place; is it a vehicle of "
                "RflySim3D?"
            )

        # behind the last child of <body>, indented as it is
        new = f"<{ELEMENT}>{number}</{ELEMENT}>"
        children = [
            e for e in self._elements if len(e.path) == 3 and body.start < e.start < body.end
        ]
        if not children:
            return body.content, body.content, new
        last = max(children, key=lambda child: child.end)
        before = re.search(r"(\r\n|\n|\r)[ \t]*\Z", self.text[: last.start])
        return last.end, last.end, (before[0] if before else "") + new


def parse_vehicle_xml(data: bytes, file: str, bom: bytes | None = None) -> VehicleXml:
    """Return the description in a file's content.

    `file` is its name in errors; `bom` is for data whose mark is cut off. Raises VehicleXmlError
    with the file's name, and the line if there is one.
    """
    if len(data) > MAX_BYTES:
        raise VehicleXmlError(
            f"{file}: {len(data):,} bytes, expected a description of at most {MAX_BYTES:,}"
        )

    # the root element
    text, encoding, bom = _decode(data, file, bom)
    elements = _find_elements(text, file)
    if not elements or elements[0].path != ("vehicle",):
        found = f"<{elements[0].path[0]}>" if elements else "nothing"
        raise VehicleXmlError(
            f"{file}: the root element is {found}, expected <vehicle>: a vehicle of RflySim3D"
        )

    # the height: at most one, in <body>, a number alone
    class_id = _at(elements, ("vehicle", "ClassID"))
    name = _at(elements, ("vehicle", "Name"))
    heights = [element for element in elements if element.path[-1] == ELEMENT]
    for element in heights:
        line = _line_of(text, element.start)
        if element.path != _PLACE:
            raise VehicleXmlError(
                f"{file}, line {line}: {ELEMENT} in <{element.path[-2]}>, expected it in <body>"
            )
        if element is not heights[0]:
            first = _line_of(text, heights[0].start)
            raise VehicleXmlError(
                f"{file}, line {line}: {ELEMENT} is already on line {first}; one of them must go"
            )
    inner = next((element for element in elements if element.path[:-1] == _PLACE), None)
    if inner is not None:
        line = _line_of(text, inner.start)
        raise VehicleXmlError(
            f"{file}, line {line}: <{inner.path[-1]}> in {ELEMENT}, expected a number alone"
        )

    return VehicleXml(
        file=file,
        text=text,
        encoding=encoding,
        bom=bom,
        class_id=None
        if class_id is None or not class_id.text
        else round(_number(class_id, text, file)),
        name="" if name is None else name.text,
        center_height_cm=_number(heights[0], text, file) if heights and heights[0].text else None,
        scale=_scale(elements, text, file),
        _elements=elements,
    )


def _scale(
    elements: tuple[_Element, ...], text: str, file: str
) -> tuple[float, float, float] | None:
    """<Scale> of <vehicle>: <x>, <y> and <z>."""
    parts = [_at(elements, ("vehicle", "Scale", axis)) for axis in "xyz"]
    found = [_number(part, text, file) for part in parts if part is not None and part.text]
    if len(found) != 3:
        return None
    if not all(0.0 < factor <= MAX_SCALE for factor in found):
        raise VehicleXmlError(
            f"{file}: Scale {found}, expected three factors above 0 and up to {MAX_SCALE:g}"
        )
    return found[0], found[1], found[2]


def read_vehicle_xml(path: StrPath) -> VehicleXml:
    """Return the description of a file.

    Raises VehicleXmlError, FileNotFoundError and other OSErrors.
    """
    with open_regular(path) as file:
        data = file.read(MAX_BYTES + 1)
    return parse_vehicle_xml(data, os.fspath(path))


@dataclass(frozen=True)
class Correction:
    """Change that `correct_center_height` made, or would make."""

    old_cm: float | None
    new_cm: float
    diff: str
    """Unified diff; empty if the file has that number already."""
    backup: Path | None
    """Copy of the old file; None for a dry run and if nothing changed."""


def correct_center_height(path: StrPath, height_cm: float, *, dry_run: bool = False) -> Correction:
    """Write the number into a vehicle's file, after a copy of it (NAME.xml.bak, then .bak.1, …).

    The file is replaced in one step or not at all. An older copy is never overwritten. Raises
    VehicleXmlError and OSError.
    """
    real = Path(os.path.realpath(path))
    old = read_vehicle_xml(real)
    old_data = old.encode()

    new = old.with_center_height(height_cm)
    if new.center_height_cm is None:
        raise VehicleXmlError(f"{path}: the number could not be written")
    diff = ""
    backup = None

    # the difference, and the file
    if old.center_height_cm is None or _in_words(old.center_height_cm) != _in_words(height_cm):
        before, after = (re.split(r"\r\n|\n|\r", text) for text in (old.text, new.text))
        name = os.fspath(path)
        diff = "\n".join(
            difflib.unified_diff(before, after, name, f"{name} (corrected)", n=2, lineterm="")
        )
        if not dry_run:
            backup = _back_up(real, old_data)
            write_whole(real, new.encode())
    return Correction(old.center_height_cm, new.center_height_cm, diff, backup)


def _decode(data: bytes, file: str, bom: bytes | None) -> tuple[str, str, bytes]:
    """(text, codec, byte order mark) such that mark + text.encode(codec) is the data again."""
    if bom is None:
        if data[:4] in _UTF32_BOMS:
            raise VehicleXmlError(
                f"{file}: UTF-32, which RflySim3D does not read; save it as UTF-8"
            )
        bom = next((mark for mark, _ in _BOMS if data.startswith(mark)), b"")
        data = data[len(bom) :]

    # the first encoding that gives the file back byte for byte
    encodings = _encodings(data, dict(_BOMS).get(bom, ""), file)
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError as error:
            reason = (
                f"byte {len(bom) + error.start + 1} ({data[error.start]:#04x}) is no {encodings[0]}"
            )
            continue
        if text.encode(encoding) == data:
            return text, encoding, bom
        reason = f"its {encoding} text cannot be written back byte for byte"
    raise VehicleXmlError(
        f"{file}: {reason}; save it as UTF-8, or name its encoding in the first line"
    )


def _encodings(data: bytes, marked: str, file: str) -> list[str]:
    """Return the encodings to try, in order.

    The mark counts more than the declaration, as in RflySim3D, which ignores the latter.
    """
    if marked:
        return [marked]
    if data[:2] in (b"<\0", b"\0<"):
        return ["utf-16-le" if data[0] else "utf-16-be"]

    # the encoding that the file declares
    declared = _DECLARED.match(data.lstrip())
    if declared is None:
        return ["utf-8", "gb18030"]
    name = declared[1].decode("ascii")
    try:
        codec = codecs.lookup(name).name
    except LookupError:
        codec = ""

    if codec.startswith("utf-16"):  # but its bytes are single: some programs write so
        return ["utf-8"]
    if codec in _CHINESE:
        return ["gb18030"]
    if codec in _EIGHT_BIT:
        return [codec]
    raise VehicleXmlError(f"{file}, line 1: encoding {name!r} is not known here; save it as UTF-8")


class _Finder:
    """The parser's target: notes where each element begins and ends, as offsets in UTF-8."""

    def __init__(self) -> None:
        self.parser: Any = None
        self.found: list[tuple[tuple[str, ...], str, int, int]] = []
        self._open: list[tuple[int, list[str]]] = []
        self._path: tuple[str, ...] = ()

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path = (*self._path, tag)
        if len(self._path) > MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} elements deep")
        self._open.append((len(self.found), []))
        self.found.append((self._path, "", self.parser.CurrentByteIndex, -1))

    def data(self, text: str) -> None:
        if self._open:
            self._open[-1][1].append(text)

    def end(self, tag: str) -> None:
        index, pieces = self._open.pop()
        path, _, start, _ = self.found[index]
        self.found[index] = (
            path,
            "".join(pieces).strip(),
            start,
            self.parser.CurrentByteIndex,
        )
        self._path = self._path[:-1]

    def close(self) -> None:
        return None


def _find_elements(text: str, file: str) -> tuple[_Element, ...]:
    finder = _Finder()
    parser = DefusedXMLParser(
        target=finder, forbid_dtd=True, forbid_entities=True, forbid_external=True
    )
    finder.parser = parser.parser
    try:
        parser.feed(text)  # as str: the declared encoding does not count any more
        parser.close()
    except DefusedXmlException as error:
        line = parser.parser.CurrentLineNumber
        raise VehicleXmlError(
            f"{file}, line {line}: a document type or entity is not taken ({error})"
        ) from None
    except ParseError as error:
        line, column = error.position
        what = str(error).partition(":")[0]
        raise VehicleXmlError(
            f"{file}, line {line}, column {column + 1}: not well-formed XML: {what}"
        ) from None
    except ValueError as error:
        raise VehicleXmlError(f"{file}, line {parser.parser.CurrentLineNumber}: {error}") from None
    # UTF-8 offset -> character index, for the offsets at which characters begin
    to_index: Sequence[int] = range(len(text) + 1)
    if not text.isascii():
        to_index = list(
            itertools.accumulate((byte & 0xC0 != 0x80 for byte in text.encode()), initial=0)
        )
    return tuple(
        _element(text, path, words, to_index[a], to_index[b]) for path, words, a, b in finder.found
    )


def _element(text: str, path: tuple[str, ...], words: str, start: int, end_event: int) -> _Element:
    tag = _START_TAG.match(text, start)
    assert tag is not None  # the parser has found it well-formed
    if tag[1]:
        return _Element(path, words, start, tag.end(), tag.end(), tag.end(), True)
    end = text.index(">", end_event) + 1
    return _Element(path, words, start, tag.end(), end_event, end, False)


def _at(elements: tuple[_Element, ...], path: tuple[str, ...]) -> _Element | None:
    return next((element for element in elements if element.path == path), None)


def _number(element: _Element, text: str, file: str) -> float:
    try:
        value = float(element.text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise VehicleXmlError(
            f"{file}, line {_line_of(text, element.start)}: {element.path[-1]} holds "
            f"{element.text[:40]!r}, "
            "expected a number"
        )
    return value


def _in_words(height_cm: float) -> str:
    """Return a number with at most four decimals (1 µm), no exponent, no negative zero."""
    text = f"{height_cm:.4f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _line_of(text: str, position: int) -> int:
    return len(re.findall(r"\r\n|\n|\r", text[:position])) + 1


def _back_up(path: Path, data: bytes) -> Path:
    """Copy the file to a free name next to it, and return that name."""
    number = 0
    while True:
        backup = path.with_name(f"{path.name}.bak" + (f".{number}" if number else ""))
        try:
            with open(backup, "xb") as file:
                file.write(data)
        except FileExistsError:
            number += 1
            continue
        shutil.copystat(path, backup)
        return backup
