# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Ignore rules: pairs without contacts, as text such as `1,2`, `type:30,type:30` or `*,ground`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from rfly_collision.shapes.vehicle_shapes import CLASSES
from rfly_collision.world.contact_tracker import GROUND, MAX_ID, STATIC, PairContacts
from rfly_common.arrays import Bools, Ints
from rfly_common.errors import ConfigError

EXPECTED = (
    "an id or range (7, 10-19), type:30, object:1001, ground, static or * on each side of a comma"
)
_SIDE = re.compile(r"(?:(type|object):)?(\d{1,10})(?:-(\d{1,10}))?", re.ASCII)
_WORDS = ("ground", "static", "*")

TypeOf = Callable[[Ints], Ints]
"""Function from ids of vehicles (m,) to their vehicleTypes (m,)."""


@dataclass(frozen=True)
class Side:
    """One side of a rule.

    `kind` is id, type, object, ground, static or *; the range is of ids or types.
    """

    kind: str
    first: int = 0
    last: int = MAX_ID

    def vehicles(self, ids: Ints, types: Ints) -> Bools:
        """(m,) which of these vehicles it means."""
        if self.kind == "*":
            return np.ones(len(ids), np.bool_)
        if self.kind == "id":
            return (self.first <= ids) & (ids <= self.last)
        if self.kind == "type":
            in_class = (self.first <= types % CLASSES) & (types % CLASSES <= self.last)
            return ((self.first <= types) & (types <= self.last)) | in_class
        return np.zeros(len(ids), np.bool_)

    def others(self, contacts: PairContacts, types: Ints) -> Bools:
        """Return a mask of the other partners (m,) that the side matches.

        `types` (m,) are those of vehicles.
        """
        if self.kind == "*":
            return np.ones(len(contacts), np.bool_)
        if self.kind == "ground":
            return contacts.other == GROUND
        if self.kind == "static":
            return contacts.other == STATIC
        if self.kind == "object":
            in_range = (self.first <= contacts.object_id) & (contacts.object_id <= self.last)
            return (contacts.other == STATIC) & in_range
        return (contacts.other > 0) & self.vehicles(contacts.other, types)


class IgnoreRules:
    """Pairs that never count. Raises ConfigError that names the rule."""

    def __init__(self, rules: Iterable[str] = ()) -> None:
        self.rules = tuple(_parse(rule) for rule in rules)

    def kept(self, contacts: PairContacts, type_of: TypeOf) -> PairContacts:
        """Return the contacts that no rule names."""
        if not self.rules or not len(contacts):
            return contacts
        types = type_of(contacts.vehicle)
        other_types = type_of(np.where(contacts.other > 0, contacts.other, contacts.vehicle))
        ignored = np.zeros(len(contacts), np.bool_)
        for one, two in self.rules:
            for left, right in ((one, two), (two, one)):
                ignored |= left.vehicles(contacts.vehicle, types) & right.others(
                    contacts, other_types
                )
        return contacts.select(~ignored)


def _parse(rule: str) -> tuple[Side, Side]:
    sides = rule.split(",")
    if len(sides) != 2:
        raise ConfigError(f"ignore: {rule!r} has {len(sides)} sides, expected {EXPECTED}")
    return _side(sides[0].strip(), rule), _side(sides[1].strip(), rule)


def _side(text: str, rule: str) -> Side:
    if text in _WORDS:
        return Side(text)
    match = _SIDE.fullmatch(text)
    if match is None:
        raise ConfigError(f"ignore: {text!r} in {rule!r}, expected {EXPECTED}")
    first = int(match[2])
    last = int(match[3] or match[2])
    if not first <= last <= MAX_ID:
        raise ConfigError(
            f"ignore: {text!r} in {rule!r}, expected numbers that rise to at most {MAX_ID}"
        )
    return Side(match[1] or "id", first, last)
