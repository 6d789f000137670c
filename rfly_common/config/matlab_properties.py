# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MATLAB's spellings of options, and its property names on dataclasses with checked assignments.

Blocks that follow MATLAB's have properties that a script may write in either spelling: `air_speed`
or `AirSpeed`, as keywords of the constructor and as attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)
Check = Callable[[str, Any], Any]
"""Function of a property's name and value that returns the value to store, or raises."""


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


def matlab_properties(
    checks: Mapping[str, Check], others: Mapping[str, str] | None = None
) -> Callable[[Class], Class]:
    """Give the fields of a dataclass MATLAB's names, and check what is assigned to them.

    `checks` has one function a field. A field is spelled in MATLAB as its name in CamelCase, or as
    `others` has it. Both spellings of one property in one call are a TypeError.
    """

    def decorate(cls: Class) -> Class:
        names = (field.name for field in fields(cls) if field.init)
        spellings = Spellings.of(*names, **(others or {}))
        make = cls.__init__  # type: ignore[misc]

        @wraps(make)
        def initialise(self: Any, *args: Any, **options: Any) -> None:
            make(self, *args, **spellings.in_python(cls.__name__, options.items()))

        def assign(self: Any, name: str, value: Any) -> None:
            check = checks.get(name)
            object.__setattr__(self, name, value if check is None else check(name, value))

        cls.__init__ = initialise  # type: ignore[misc]
        if checks:  # a frozen class stays frozen
            cls.__setattr__ = assign  # type: ignore[method-assign,assignment]
        for name, spelt in spellings.matlab.items():
            setattr(cls, spelt, _alias(name))
        return cls

    return decorate


def _alias(name: str) -> property:
    """Return a property that is another attribute under MATLAB's name."""

    def read(self: Any) -> Any:
        return getattr(self, name)

    def write(self: Any, value: Any) -> None:
        setattr(self, name, value)

    return property(read, write, doc=f"MATLAB's name of `{name}`.")
