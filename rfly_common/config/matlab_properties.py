# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MATLAB's property names on dataclasses, and checks of every assignment.

Blocks that follow MATLAB's have properties that a script may write in either spelling: `air_speed`
or `AirSpeed`, as keywords of the constructor and as attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)
Check = Callable[[str, Any], Any]
"""Function of a property's name and value that returns the value to store, or raises."""


def matlab_properties(
    checks: Mapping[str, Check], spellings: Mapping[str, str] | None = None
) -> Callable[[Class], Class]:
    """Give the fields of a dataclass MATLAB's names, and check what is assigned to them.

    `checks` has one function a field. A field is spelled in MATLAB as its name in CamelCase, or as
    `spellings` has it. Both spellings of one property in one call are a TypeError.
    """

    def decorate(cls: Class) -> Class:
        names = [field.name for field in fields(cls) if field.init]
        matlab = {name: (spellings or {}).get(name, _camel_case(name)) for name in names}
        python = {spelt.lower(): name for name, spelt in matlab.items()}
        make = cls.__init__  # type: ignore[misc]

        @wraps(make)
        def initialise(self: Any, *args: Any, **options: Any) -> None:
            in_python: dict[str, Any] = {}
            for key, value in options.items():
                name = key if key in matlab else python.get(key.lower(), key)
                if name in in_python:
                    raise TypeError(f"{name} and {matlab[name]} are the same property, given twice")
                if name not in matlab:
                    known = ", ".join(matlab.values())
                    raise TypeError(f"{cls.__name__}: no property {key}, expected one of {known}")
                in_python[name] = value
            make(self, *args, **in_python)

        def assign(self: Any, name: str, value: Any) -> None:
            check = checks.get(name)
            object.__setattr__(self, name, value if check is None else check(name, value))

        cls.__init__ = initialise  # type: ignore[misc]
        if checks:  # a frozen class stays frozen
            cls.__setattr__ = assign  # type: ignore[method-assign,assignment]
        for name, spelt in matlab.items():
            setattr(cls, spelt, _alias(name))
        return cls

    return decorate


def _camel_case(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _alias(name: str) -> property:
    """Return a property that is another attribute under MATLAB's name."""

    def read(self: Any) -> Any:
        return getattr(self, name)

    def write(self: Any, value: Any) -> None:
        setattr(self, name, value)

    return property(read, write, doc=f"MATLAB's name of `{name}`.")
