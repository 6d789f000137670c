# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Tags of buildings in OpenStreetMap: which of them stand, and between which heights.

The tags are those of Simple 3D Buildings, Key:height, Key:building:levels, Key:level, Map
features/Units and Lifecycle prefix at https://wiki.openstreetmap.org. People write lengths in many
ways; a text that allows two readings counts as not understood.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import NamedTuple

Tags = Mapping[str, str]

LEVEL = 3.0
"""Height of a storey, m."""
MAX_HEIGHT = 1_000.0
"""Height of a building, at most, m."""
MAX_TEXT = 255
"""Characters of a value, at most, as in OpenStreetMap's own database."""
_SHOWN = 40
"""Characters of a value that messages show."""

GONE = "abandoned, demolished, proposed or under construction"
UNDERGROUND = "underground"
_ABSENT = ("demolished", "destroyed", "dismantled", "planned", "proposed", "razed", "removed")
_STAGES = (*_ABSENT, "abandoned", "construction", "was")
_BELOW_GROUND = re.compile(r"-\d+(?:\.\d+)?(?:[;-]-\d+(?:\.\d+)?)*")
"""A value of Key:level that names floors below the ground only."""

_HEIGHTS = ("height", "building:height", "est_height")
"""Keys of the height of the roof's top above the ground; the first one counts."""
SIZES = (*_HEIGHTS, "building:levels", "roof:height", "roof:levels")
_BOTTOMS = ("min_height", "building:min_level")

_UNITS = {
    **dict.fromkeys(("m", "metre", "metres", "meter", "meters"), 1.0),
    "mm": 0.001,
    "cm": 0.01,
    "km": 1_000.0,
    **dict.fromkeys(("ft", "foot", "feet", "'"), 0.3048),
    **dict.fromkeys(("in", "inch", "inches", '"'), 0.0254),
}
_SMALLER = {0.3048: (0.0254, 12.0), 1.0: (0.01, 100.0)}
"""Unit that may follow another one, and its count in that unit."""
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‛′´`ʹʼ", "'"),
        **dict.fromkeys("“”‟″ʺ", '"'),
        **dict.fromkeys("‐‑‒–—−", "-"),
    }
)
_ABOUT = re.compile(r"^(?:[~≈+<≤]|<=|(?:ca|circa|c|about|approx|est)\b\.?)\s*")
# a comma before three digits may separate thousands
_NUMBER = r"(\d+(?:\.\d*|,(?!\d{3}(?!\d))\d+)?|[.,]\d+)"
_LENGTH = re.compile(rf"{_NUMBER}\s*([a-z'\"]*)\.?")
_TWO_LENGTHS = re.compile(rf"(\d+)\s*([a-z]+|')\.?\s*(-?)\s*{_NUMBER}\s*([a-z]+|\"|)\.?")
_UNIT_AT_END = re.compile(r"\s*[a-z'\"]+\.?$")
_SEPARATOR = re.compile(r"\s*(?:[;/|]|,\s|\.\.+|-|\bto\b)\s*")
_SUM = re.compile(rf"{_NUMBER}\s*\+\s*{_NUMBER}")


class Span(NamedTuple):
    """Heights between which a building stands, above the lowest ground below it."""

    bottom: float
    """Its lower side, m; 0: on the ground."""
    top: float
    """Its highest point, m."""
    is_default: bool
    """True if no tag gives a height."""
    not_understood: str
    """The first tag that cannot be used, as key=text; empty: none."""


def is_outline(tags: Tags) -> bool:
    """Return whether these are the tags of a building."""
    return tags.get("building", "no") != "no"


def is_part(tags: Tags) -> bool:
    """Return whether these are the tags of a part of a building."""
    return tags.get("building:part", "no") != "no"


def had_building(tags: Tags) -> bool:
    """Return whether a lifecycle prefix, as in demolished:building, is all that is left of one."""
    return not is_outline(tags) and any(f"{stage}:building" in tags for stage in _STAGES)


def absence(tags: Tags) -> str:
    """Return why a building does not rise above the ground: GONE, UNDERGROUND, or no text."""
    values = {tags.get("building"), tags.get("building:part")}
    is_absent = any(tags.get(stage) == "yes" for stage in _ABSENT)
    if is_absent or had_building(tags) or not values.isdisjoint(_STAGES):
        return GONE

    is_below = (
        UNDERGROUND in (*values, tags.get("location"), tags.get("parking"))
        or tags.get(UNDERGROUND) == "yes"
        or _BELOW_GROUND.fullmatch(tags.get("level", "").replace(" ", ""))
    )
    has_only_cellars = (
        length(tags.get("building:levels", ""), LEVEL) == 0.0
        and length(tags.get("building:levels:underground", ""))
        and not any(length(tags.get(key, "")) for key in SIZES)
    )
    return UNDERGROUND if is_below or has_only_cellars else ""


def with_heights(tags: Tags, outline: Tags) -> Tags:
    """Return the tags of a part, with the height of the building's outline if it has none."""
    if any(key in tags for key in SIZES):
        return tags
    return {**{key: outline[key] for key in SIZES if key in outline}, **tags}


def span(tags: Tags, default: float) -> Span:
    """Return the heights between which a building stands, with `default` (m) as its last resort.

    The top is that of `height`, which includes the roof, else LEVEL for each of `building:levels`
    and the roof's height or levels in addition. A bottom below the ground counts as on it.
    """
    sizes = {key: length(tags[key], _metres_of(key)) for key in SIZES if key in tags}
    bottoms = {
        key: 0.0 if tags[key].startswith("-") else length(tags[key], _metres_of(key), min)
        for key in _BOTTOMS
        if key in tags
    }
    wrong = [key for key, value in (*sizes.items(), *bottoms.items()) if value is None]

    # the top
    top = next(filter(None, map(sizes.get, _HEIGHTS)), None)
    levels = sizes.get("building:levels")
    if top is None and levels is not None:
        top = levels + (sizes.get("roof:height") or sizes.get("roof:levels") or 0.0)
    if not top or top > MAX_HEIGHT:
        wrong += [key for key in (*_HEIGHTS, "building:levels") if key in sizes]
        top = None

    # the bottom
    height = top or default
    bottom = next(filter(None, map(bottoms.get, _BOTTOMS)), 0.0)
    if bottom >= height:
        wrong += bottoms
        bottom = 0.0

    text = f"{wrong[0]}={tags[wrong[0]][:_SHOWN]}" if wrong else ""
    return Span(bottom, height, top is None, text)


def length(
    text: str, unit: float = 1.0, choose: Callable[[list[float]], float] = max
) -> float | None:
    """Return the metres of a text such as `12.5`, `3,5 m`, `40 ft`, `12′6″`, `~15` or `15-20`.

    `unit`: metres of a number without a unit. `choose`: which end of a range or a list counts.
    Storeys as `4+1` are a sum. Returns None for another text.
    """
    if len(text) > MAX_TEXT:
        return None

    text = unicodedata.normalize("NFKC", text.translate(_PLAIN)).lower()
    text = _ABOUT.sub("", text.replace("''", '"').strip(" ;"))

    added = _SUM.fullmatch(text)
    if added and unit == LEVEL:
        return unit * (_number(added[1]) + _number(added[2]))

    # the unit of a range or a list may be written once
    pieces = [text] if _single(text, unit) is not None else _SEPARATOR.split(text)
    units = [found[0] for found in map(_UNIT_AT_END.search, reversed(pieces)) if found]
    common = units[0] if units else ""
    values = [_single(piece + common * piece[-1:].isdigit(), unit) for piece in pieces]
    known = [value for value in values if value is not None]
    return choose(known) if len(known) == len(pieces) else None


def _metres_of(key: str) -> float:
    """Return the metres of a number without a unit."""
    return LEVEL if "level" in key else 1.0


def _single(text: str, unit: float) -> float | None:
    """Return the metres of one length, which may have two units, or None."""
    two = _TWO_LENGTHS.fullmatch(text)
    if two:
        larger = _UNITS.get(two[2], 0.0)
        smaller, most = _SMALLER.get(larger, (0.0, 0.0))
        rest = _number(two[4])
        is_usual = two[5] == "" and two[3] == "" and two[2] == "'"
        if rest < most and (is_usual or _UNITS.get(two[5]) == smaller):
            return int(two[1]) * larger + rest * smaller

    one = _LENGTH.fullmatch(text)
    if one is None or (one[2] and one[2] not in _UNITS):
        return None
    return _number(one[1]) * (_UNITS[one[2]] if one[2] else unit)


def _number(text: str) -> float:
    """Return a number with a decimal point or comma."""
    return float(text.replace(",", "."))
