# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""RflySim3D's models by name and number, from `data/vehicle_models.yaml`."""

from __future__ import annotations

import difflib
import functools
import importlib.resources
from dataclasses import dataclass

from rfly_common.config.marked_yaml import parse_yaml
from rfly_common.errors import ConfigError

STYLE = 10_000
"""Factor between the DisplayOrder and the ClassID in the number of a class's further model.

RflySim's full edition has ten times as much. The remainder of either is the ClassID.
"""
INT32_MAX = 2**31 - 1


@dataclass(frozen=True)
class VehicleModel:
    """A model of the list."""

    name: str
    class_id: int
    """RflySim3D's ClassID."""
    source: str
    """Source of name and number: manual, scripts or suite."""
    aliases: tuple[str, ...] = ()
    """Further names."""
    display_order: int = 0
    """Place within the class; 0 for the first model."""
    look: str = ""
    """Model that our own window draws; empty: a plain marker."""

    @property
    def vehicle_type(self) -> int:
        """Return the number for packets."""
        return self.display_order * STYLE + self.class_id


@functools.cache
def vehicle_models() -> tuple[VehicleModel, ...]:
    """Return all models of the list, in its order."""
    file = importlib.resources.files("rfly_common") / "data" / "vehicle_models.yaml"
    entries = parse_yaml(file.read_text("utf-8"), file.name).value["models"]
    return tuple(
        VehicleModel(**{**entry, "aliases": tuple(entry.get("aliases", ()))}) for entry in entries
    )


@functools.cache
def _by_name() -> dict[str, VehicleModel]:
    return {name: model for model in vehicle_models() for name in (model.name, *model.aliases)}


@functools.cache
def _by_number() -> dict[int, VehicleModel]:
    models = tuple(reversed(vehicle_models()))  # the first of a class counts
    return {m.class_id: m for m in models} | {m.vehicle_type: m for m in models}


def model_named(name: str) -> VehicleModel | None:
    """Return the model of a name or alias, None if the list has none."""
    return _by_name().get(name)


def model_of(vehicle_type: int) -> VehicleModel | None:
    """Return the model of a number: its own, else the first of its class; None if unknown."""
    models = _by_number()
    return models.get(vehicle_type) or models.get(vehicle_type % STYLE)


def looks_of_class(vehicle_type: int) -> list[int]:
    """Return the vehicleTypes of the models that share this one's class, in the list's order."""
    class_id = vehicle_type % STYLE
    return [model.vehicle_type for model in vehicle_models() if model.class_id == class_id]


def model_text(vehicle_type: int) -> str:
    """Return the name of a number's model, or `type N` for an unknown one."""
    model = model_of(vehicle_type)
    return f"type {vehicle_type}" if model is None else model.name


def type_number(type_or_name: int | str) -> int:
    """Return the vehicleType of a number, of its digits, or of a model's name.

    Raises ConfigError for a name that is not in the list; the text proposes similar ones.
    """
    if not isinstance(type_or_name, str):
        return int(type_or_name)
    text = type_or_name.strip()
    if text.isascii() and text.isdigit() and int(text) <= INT32_MAX:
        return int(text)

    model = model_named(text.lower())
    if model is not None:
        return model.vehicle_type

    near = difflib.get_close_matches(text.lower(), _by_name(), 3, 0.5)
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    names = ", ".join(each.name for each in vehicle_models())
    raise ConfigError(
        f"no model is named {type_or_name[:60]!r}; {hint}"
        f"expected a number from 0 to {INT32_MAX} or one of {names}"
    )
