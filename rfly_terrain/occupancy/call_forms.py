# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MATLAB's call forms in addition to Python's: texts in position, name-value pairs, both spellings.

One table, CALL_FORMS, lists the arguments of each method. Source: MathWorks, Navigation Toolbox,
the reference pages of binaryOccupancyMap and its functions.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

_Method = TypeVar("_Method", bound=Callable[..., Any])


class CallFormError(TypeError, ValueError):
    """Arguments that fit no form of a call: an option without a value, or given twice."""


@dataclass(frozen=True)
class CallForm:
    """Arguments of a method in addition to numbers in position."""

    options: Mapping[str, str]
    """Names of options: Python's -> MATLAB's."""
    text: str = ""
    """Option that a text in position stands for."""
    words: tuple[str, ...] = ()
    """Options whose value is a word, in any case."""

    @cached_property
    def spellings(self) -> dict[str, str]:
        """Names of options: either spelling in lower case -> Python's."""
        return {
            spelt.lower(): option
            for option, matlab in self.options.items()
            for spelt in (option, matlab)
        }


_MAP_PROPERTIES = {
    "resolution": "Resolution",
    "grid_origin_in_local": "GridOriginInLocal",
    "local_origin_in_world": "LocalOriginInWorld",
    "grid_location_in_world": "GridLocationInWorld",
    "default_value": "DefaultValue",
    "layer_name": "LayerName",
    "one_based": "OneBased",
}
_FRAME = CallForm({"frame": "Frame"}, "frame", ("frame",))
CALL_FORMS: dict[str, CallForm] = {
    "__init__": CallForm({**_MAP_PROPERTIES, "frame": "Frame"}, "frame", ("frame",)),
    "occupancy_map": CallForm(
        {
            **_MAP_PROPERTIES,
            "occupied_threshold": "OccupiedThreshold",
            "free_threshold": "FreeThreshold",
            "probability_saturation": "ProbabilitySaturation",
            "frame": "Frame",
        },
        "frame",
        ("frame",),
    ),
    "update_occupancy": _FRAME,
    "get_occupancy": _FRAME,
    "check_occupancy": _FRAME,
    "set_occupancy": _FRAME,
    "inflate": _FRAME,
    "move": CallForm(
        {"move_type": "MoveType", "fill_value": "FillValue", "sync_with": "SyncWith"},
        words=("move_type",),
    ),
    "show": CallForm(
        {"frame": "Frame", "ax": "Parent", "fast_update": "FastUpdate"}, "frame", ("frame",)
    ),
    "plot": CallForm({"ax": "Parent", "maximum_range": "MaximumRange"}),
    "remove_invalid_data": CallForm({"range_limits": "RangeLimits", "angle_limits": "AngleLimits"}),
    "map_maze": CallForm(
        {
            "map_size": "MapSize",
            "map_resolution": "MapResolution",
            "wall_thickness": "WallThickness",
        },
    ),
    "map_clutter": CallForm(
        {
            "shapes": "Shapes",
            "map_size": "MapSize",
            "map_resolution": "MapResolution",
            "collision_free": "CollisionFree",
        },
        "shapes",
    ),
}


def in_call_forms(method: _Method, row: str = "") -> _Method:
    """Return the method, to be called in any form of its row of CALL_FORMS, that of its name."""
    name = row or method.__name__
    form = CALL_FORMS[name]
    taken = frozenset(inspect.signature(method).parameters)

    @wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and not any(isinstance(value, str) for value in args):
            return method(*args)
        values, options = arguments(name, form, args, kwargs)
        if unknown := options.keys() - taken:
            raise CallFormError(
                f"{name}: no option {min(unknown)}, "
                f"expected one of {', '.join(form.options.values())}"
            )
        return method(*values, **options)

    return cast(_Method, called)


def arguments(
    name: str, form: CallForm, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Return values in position and options by Python's names, of a call in either spelling."""
    spelling = form.spellings
    values: list[Any] = []
    options: dict[str, Any] = {}

    def take(option: str, value: Any) -> None:
        if option in options:
            known = form.options.get(option)
            names = f"{option} and {known} are" if known else option
            raise CallFormError(f"{name}: {names} the same option, given twice")
        options[option] = (
            value.lower() if option in form.words and isinstance(value, str) else value
        )

    remaining = list(args)
    while remaining:
        value = remaining.pop(0)
        option = spelling.get(value.lower()) if isinstance(value, str) else None
        if not isinstance(value, str):
            if options:
                raise CallFormError(
                    f"{name}: {value!r} after an option, expected the name of another option"
                )
            values.append(value)
        elif option is not None and remaining:
            take(option, remaining.pop(0))
        elif form.text and option is None:
            take(form.text, value)
        else:
            known = ", ".join(form.options.values())
            raise CallFormError(
                f"{name}: {value!r}, expected the name of an option and its value: {known}"
            )
    for key, value in kwargs.items():
        take(spelling.get(key.lower(), key), value)
    return values, options
