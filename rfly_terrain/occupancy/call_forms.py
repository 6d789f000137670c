# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MATLAB's call forms in addition to Python's: texts in position, name-value pairs, both spellings.

One table, CALL_FORMS, lists the arguments of each method. Source: MathWorks, Navigation Toolbox,
the reference pages of binaryOccupancyMap and its functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

_Method = TypeVar("_Method", bound=Callable[..., Any])


class CallFormError(TypeError, ValueError):
    """Arguments that fit no form of a call: an option that is unknown, or given twice."""


@dataclass(frozen=True)
class Spellings:
    """Names of options in Python's and in MATLAB's spelling."""

    matlab: Mapping[str, str]
    """MATLAB's name by Python's."""

    @classmethod
    def of(cls, *names: str, **others: str) -> Spellings:
        """Return CamelCase for the names of Python, and the `others` as they are."""
        return cls({name: name.title().replace("_", "") for name in names} | others)

    @cached_property
    def python(self) -> dict[str, str]:
        """Python's name by either spelling in lower case."""
        return {
            spelt.lower(): name for name, matlab in self.matlab.items() for spelt in (name, matlab)
        }

    def in_python(
        self, call: str, options: Iterable[tuple[str, Any]], known: Collection[str] = ()
    ) -> dict[str, Any]:
        """Return options by Python's names; `known` are further ones, in Python's spelling only.

        Raise CallFormError for an option that is unknown or given twice.
        """
        values: dict[str, Any] = {}
        for key, value in options:
            name = self.python.get(key.lower(), key)
            if name not in self.matlab and name not in known:
                raise CallFormError(
                    f"{call}: no option {key}, expected one of {', '.join(self.matlab.values())}"
                )
            if name in values:
                raise CallFormError(
                    f"{call}: {name} and {self.matlab[name]} are the same option, given twice"
                )
            values[name] = value
        return values


@dataclass(frozen=True)
class CallForm:
    """Arguments of a method in addition to numbers in position."""

    options: Spellings
    text: str = ""
    """Option that a text in position stands for."""
    words: tuple[str, ...] = ()
    """Options whose value is a word, in any case."""


_MAP_PROPERTIES = (
    "resolution",
    "grid_origin_in_local",
    "local_origin_in_world",
    "grid_location_in_world",
    "default_value",
    "layer_name",
    "one_based",
)
_FRAME = CallForm(Spellings.of("frame"), "frame", ("frame",))
CALL_FORMS: dict[str, CallForm] = {
    "__init__": CallForm(Spellings.of(*_MAP_PROPERTIES, "frame"), "frame", ("frame",)),
    "get_occupancy": _FRAME,
    "check_occupancy": _FRAME,
    "set_occupancy": _FRAME,
    "inflate": _FRAME,
    "move": CallForm(Spellings.of("move_type", "fill_value", "sync_with"), words=("move_type",)),
    "show": CallForm(Spellings.of("frame", "fast_update", ax="Parent"), "frame", ("frame",)),
    "plot": CallForm(Spellings.of("maximum_range", ax="Parent")),
    "remove_invalid_data": CallForm(Spellings.of("range_limits", "angle_limits")),
    "map_maze": CallForm(Spellings.of("map_size", "map_resolution", "wall_thickness")),
    "map_clutter": CallForm(
        Spellings.of("shapes", "map_size", "map_resolution", "collision_free"), "shapes"
    ),
}


def in_call_forms(method: _Method) -> _Method:
    """Return the method, to be called in any form of its row of CALL_FORMS, that of its name."""
    name = method.__name__
    form = CALL_FORMS[name]
    taken = frozenset(inspect.signature(method).parameters)

    @wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and not any(isinstance(value, str) for value in args):
            return method(*args)
        values, options = arguments(name, form, args, kwargs, taken)
        return method(*values, **options)

    return cast(_Method, called)


def arguments(
    name: str,
    form: CallForm,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    known: Collection[str] = (),
) -> tuple[list[Any], dict[str, Any]]:
    """Return values in position and options by Python's names, of a call in either spelling.

    `known`: names of Python that are no options of MATLAB's.
    """
    values: list[Any] = []
    pairs: list[tuple[str, Any]] = []

    remaining = list(args)
    while remaining:
        value = remaining.pop(0)
        option = form.options.python.get(value.lower()) if isinstance(value, str) else None
        if not isinstance(value, str):
            if pairs:
                raise CallFormError(
                    f"{name}: {value!r} after an option, expected the name of another option"
                )
            values.append(value)
        elif option is not None and remaining:
            pairs.append((option, remaining.pop(0)))
        elif form.text and option is None:
            pairs.append((form.text, value))
        else:
            known = ", ".join(form.options.matlab.values())
            raise CallFormError(
                f"{name}: {value!r}, expected the name of an option and its value: {known}"
            )

    options = form.options.in_python(name, [*pairs, *kwargs.items()], known)
    return values, {
        option: value.lower() if option in form.words and isinstance(value, str) else value
        for option, value in options.items()
    }
