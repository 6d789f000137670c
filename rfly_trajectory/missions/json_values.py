"""Values of a mission file's JSON, checked: MissionFileError that says where, what was found and what was expected."""

from __future__ import annotations

from typing import Any

from rfly_common.errors import MissionFileError


def get_key(values: dict[str, Any], key: str, where: str) -> Any:
    """The value of a key that must be there."""
    if key not in values:
        raise MissionFileError(f"{where}: {key}: missing" if where else f"{key}: missing")
    return values[key]


def expect(values: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Refuse any other value of a key."""
    found = get_key(values, key, where)
    if found != value or isinstance(found, bool):
        raise MissionFileError(f"{where}{key}: {short(found)}, expected {value!r}")


def as_object(value: Any, where: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise MissionFileError(f"{where}: {short(value)}, expected an object")
    return value


def as_list(value: Any, where: str) -> list[Any]:
    """A JSON list."""
    if not isinstance(value, list):
        raise MissionFileError(f"{where}: {short(value)}, expected a list")
    return value


def as_number(value: Any, where: str) -> float:
    """A number of no odd size."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e300:
        raise MissionFileError(f"{where}: {short(value)}, expected a number")
    return float(value)


def as_integer(value: Any, where: str, low: int, high: int) -> int:
    """A whole number from low to high."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300 or int(value) != value:
        raise MissionFileError(f"{where}: {short(value)}, expected a whole number")
    if not low <= value <= high:
        raise MissionFileError(f"{where}: {short(value)}, expected {low} to {high}")
    return int(value)


def as_boolean(value: Any, where: str) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise MissionFileError(f"{where}: {short(value)}, expected true or false")
    return value


def as_geo_position(value: Any, where: str) -> tuple[float, float]:
    """[latitude, longitude] in degrees."""
    numbers = [as_number(v, where) for v in as_list(value, where)]
    if len(numbers) != 2 or abs(numbers[0]) > 90.0 or abs(numbers[1]) > 180.0:
        raise MissionFileError(f"{where}: {short(value)}, expected latitude within ±90° and longitude within ±180°")
    return numbers[0], numbers[1]


def short(value: Any) -> str:
    """Its repr, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
