# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Common base of maps of free and occupied cells and of maps of probabilities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools
from rfly_terrain.height_map.grid import snap
from rfly_terrain.occupancy.call_forms import in_call_forms
from rfly_terrain.occupancy.cell_grid import SNAP, cells_for, check_frame, checked_size, number
from rfly_terrain.occupancy.cells import resample, sampled, shifted
from rfly_terrain.occupancy.map_frames import MapFrames
from rfly_terrain.occupancy.places import places_to_write, shift_window, window_shift

if TYPE_CHECKING:
    from typing_extensions import Self


class CellMap(MapFrames, ABC):
    """Matrix of cells that is written, inflated, drawn, and moved over the world."""

    _title: str
    """Title of pictures."""
    _words: str
    """The kind of map, in messages."""
    _defaults: ClassVar[dict[str, Any]] = {
        "grid_origin_in_local": (0, 0),
        "local_origin_in_world": (0, 0),
        "one_based": False,
    }
    """Properties, by Python's names, and their defaults."""
    _drawn: Any = None
    """Images by axes, of `show`; None before the first."""
    _cells: NDArray[Any]
    """Values as they are stored, (rows, columns), row 0 on top."""

    @abstractmethod
    def _stored(self, values: Any, what: str) -> NDArray[Any]:
        """Return new values, checked, as they are stored."""

    @abstractmethod
    def _grown(self, cells: int) -> NDArray[Any]:
        """Return the cells with every occupied one grown by a disc of this radius."""

    @abstractmethod
    def _changed(self) -> None:
        """Forget what was computed from the cells."""

    @abstractmethod
    def occupancy_matrix(self) -> NDArray[Any]:
        """Return the cells' values, (rows, columns), row 0 on top."""

    def _begin(
        self, width: Any, height: Any, resolution: Any, frame: str, keywords: Mapping[str, Any]
    ) -> None:
        """Take the cells of a map, of a matrix, or of an empty map's size, and its properties.

        `keywords` are by Python's names; None: not given.
        """
        check_frame(frame, ("world", "grid"))
        source = width if self._is_alike(width) else None
        properties = self._defaults if source is None else source._properties()
        given = {name: value for name, value in keywords.items() if value is not None}
        properties = {**properties, **given}
        location = properties.pop("grid_location_in_world", None)
        _check_location(location, given.get("local_origin_in_world"))
        self._set_limits(properties)

        # another map, a matrix, or a size
        if source is not None:
            cells, per_metre = source._resampled(_resolution_behind(height, resolution, frame))
        elif np.ndim(width) == 2:
            per_metre = _resolution_behind(height, resolution, frame)
            per_metre = 1 if per_metre is None else per_metre
            cells = self._stored(width, "p")
            checked_size(*cells.shape)
        else:
            per_metre = number(1 if resolution is None else resolution, "resolution", above=0.0)
            shape = _empty_shape(width, 10 if height is None else height, per_metre, frame)
            value = self._cell_value(properties["default_value"], "default_value")
            cells = np.full(shape, self._stored(value, "default_value"))

        super().__init__((cells.shape[0], cells.shape[1]), per_metre, **properties)
        if location is not None:
            self.grid_location_in_world = location
        self._cells = cells
        self._changed()

    def _set_limits(self, properties: dict[str, Any]) -> None:
        """Set what only this kind of map has, and take it out of the properties."""

    def _properties(self) -> dict[str, Any]:
        """Return the properties by Python's names."""
        return {name: getattr(self, name) for name in self._defaults}

    def _resampled(self, resolution: Any) -> tuple[NDArray[Any], float]:
        """Return a copy of the cells, or the same area in other cells, and the resolution."""
        if resolution is None:
            return self._cells.copy(), self.resolution
        per_metre = number(resolution, "resolution", above=0.0)
        return resample(self._cells, per_metre / self.resolution), per_metre

    def copy(self) -> Self:
        """Return an independent map with the same cells and properties."""
        return type(self)(self)  # type: ignore[call-arg,arg-type]

    def _is_alike(self, value: Any) -> bool:
        """Return whether a value is a map of this kind."""
        return isinstance(value, CellMap) and value.data_type == self.data_type

    def _checked_map(self, value: Any, what: str) -> Self:
        """Return the value if it is a map of this kind. Raise ValueError for anything else."""
        if not self._is_alike(value):
            raise ValueError(f"{what}: {type(value).__name__}, expected {self._words}")
        return cast("Self", value)

    @in_call_forms
    def set_occupancy(self, points: ArrayLike, values: ArrayLike, *, frame: str = "world") -> Bools:
        """Write one value, or one per point, (n,) or (n, 1); later points win.

        Values are probabilities, within the saturation limits; in a map of free and occupied cells
        0 is free, any other number occupied. A matrix of values with one location is a block,
        placed as that of `get_occupancy`. Returns, in the shape of points or block, which of them
        lie on the map; the others are ignored.
        """
        places, stored = places_to_write(self, points, self._stored(values, "values"), frame)
        places.write(self._cells, stored)
        self._changed()
        return places.inside

    @in_call_forms
    def inflate(self, radius: float, frame: str = "world") -> None:
        """Grow every occupied cell, or give every cell the largest probability, by a disc of cells.

        The disc holds the cells whose centres are at most the radius, rounded up to whole cells,
        away (to within rounding: i² + j² ≤ r² + r). The radius is in metres, or in cells in the
        frame "grid".
        """
        check_frame(frame, ("world", "grid"))
        reach = number(radius, "radius", at_least=0.0)
        if frame == "grid":
            cells = float(np.ceil(snap(reach, SNAP)))
        else:
            cells = cells_for(reach, self.resolution)
        self._cells = self._grown(int(min(cells, self._rows + self._columns)))
        self._changed()

    @in_call_forms
    def move(
        self,
        value: ArrayLike,
        *,
        move_type: str = "absolute",
        fill_value: Any = None,
        sync_with: Self | None = None,
    ) -> None:
        """Move the window over the world to `value`, or ("relative") by it, in whole cells.

        The shift is truncated towards zero. Cells that stay in view keep their value at their
        place. Those newly in view take the value of `sync_with` where it covers their centre, else
        `fill_value` or, without one, `default_value`.
        """
        shift = window_shift(self, value, move_type)
        fill = self.default_value if fill_value is None else fill_value
        stored = self._stored(self._cell_value(fill, "fill_value"), "fill_value")

        # the cells, and those newly in view
        source = None if sync_with is None else self._checked_map(sync_with, "sync_with")
        source = self.copy() if source is self else source
        shift_window(self, shift)
        self._cells, revealed = shifted(self._cells, shift, stored)

        if source is not None:
            values, covered = self._values_of(source)
            revealed &= covered
            self._cells[revealed] = values[revealed]
        self._changed()

    def sync_with(self, source: Self) -> NDArray[Any]:
        """Take over the values of another map at the centres of the cells, else `default_value`.

        Resolutions may differ. Returns the new matrix.
        """
        values, covered = self._values_of(self._checked_map(source, "source"))
        default = self._stored(self.default_value, "default_value")
        self._cells = np.where(covered, values, default)
        self._changed()
        return self.occupancy_matrix()

    def _values_of(self, source: Self) -> tuple[NDArray[Any], Bools]:
        """Return stored values of another map at the centres of the cells, and where it has any."""
        return sampled(source._cells, source._grid("world"), self._grid("world"))

    @in_call_forms
    def show(self, frame: str = "world", *, ax: Any = None, fast_update: bool = False) -> Any:
        """Draw the map, free white and occupied black, into Matplotlib axes (the current ones).

        Units are those of the frame. `fast_update` reuses the image that this map drew there
        before. Returns the image artist.
        """
        from rfly_terrain.occupancy.plot import draw

        return draw(self, frame, ax, fast_update)

    # MATLAB's names; what they take is in call_forms.CALL_FORMS
    setOccupancy: Callable[..., Any] = set_occupancy
    syncWith = sync_with


def _empty_shape(width: Any, height: Any, per_metre: float, frame: str) -> tuple[int, int]:
    """Return the size of an empty map, of metres or ("grid") of rows and columns."""
    if frame == "grid":
        return checked_size(number(width, "rows"), number(height, "cols"))
    across = number(width, "width", above=0.0)
    up = number(height, "height", above=0.0)
    return checked_size(cells_for(up, per_metre), cells_for(across, per_metre))


def _resolution_behind(height: Any, resolution: Any, frame: str) -> Any:
    """Return the resolution that stands behind a matrix or a map; None for none."""
    if (height is not None and resolution is not None) or frame == "grid":
        raise ValueError("expected (matrix), (matrix, resolution), (map) or (map, resolution)")
    return height if resolution is None else resolution


def _check_location(location: Any, local_origin: Any) -> None:
    """Raise ValueError if both properties say where a map is."""
    if location is not None and local_origin is not None:
        raise ValueError(
            "grid_location_in_world and local_origin_in_world both say where the map is, "
            "expected one"
        )
