# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""OccupancyMap: the probability that each cell is occupied, updated by observations.

A cell holds the log-odds l = ln(p / (1 − p)) of its probability p. An observation with probability
o adds ln(o / (1 − o)), which is Bayes' rule for independent observations (A. Elfes, Using Occupancy
Grids for Mobile Robot Perception and Navigation, 1989); the sum is kept between the log-odds of the
saturation limits.

Source of methods, defaults and thresholds: MathWorks, Navigation Toolbox, reference page of
`occupancyMap` and those of its functions. MATLAB stores 16 bits a cell, which rounds probabilities
to about 0.001; here they are float64. The pages leave open how several rays of one call that touch
the same cell count: here each of them is an observation, and the order of rays does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rfly_common.arrays import Bools, Floats, Ints
from rfly_terrain.occupancy.call_forms import in_call_forms
from rfly_terrain.occupancy.cell_grid import (
    number,
    numbers,
)
from rfly_terrain.occupancy.cell_map import CellMap
from rfly_terrain.occupancy.cells import largest_nearby
from rfly_terrain.occupancy.occupancy_map import BinaryOccupancyMap
from rfly_terrain.occupancy.places import (
    observed_rays,
    places_of,
    places_to_write,
)
from rfly_terrain.occupancy.rays import segments_between, touched_cells
from rfly_terrain.occupancy.scan import Scan

if TYPE_CHECKING:
    from typing_extensions import Self

MISS = 0.4
"""Default probability of cells that a ray goes through."""
HIT = 0.7
"""Default probability of cells in which a ray ends."""
SATURATION = (0.001, 0.999)
"""Default limits of probabilities."""
OCCUPIED_THRESHOLD = 0.65
"""Default probability above which a cell is occupied."""
FREE_THRESHOLD = 0.2
"""Default probability below which a cell is free."""

# values of check_occupancy
UNKNOWN = -1
FREE = 0
OCCUPIED = 1


class OccupancyMap(CellMap):
    """Grid of probabilities that cells are occupied, with the methods of MATLAB's `occupancyMap`.

    Frames, points, blocks, rays and the moving window are those of `BinaryOccupancyMap`: indices
    count from 0, or from 1 with `one_based`, and the first row is the top row. A cell is occupied
    above `occupied_threshold`, free below `free_threshold`, and unknown between them. Arguments and
    results are copied. Bad arguments raise ValueError.

    >>> m = OccupancyMap(10, 10, 2)
    >>> m.insert_ray([1, 5], [[8, 5.1]])
    >>> m.get_occupancy([[4, 5.1], [8, 5.1], [5, 9]]).round(3)
    array([0.4, 0.7, 0.5])
    """

    _title = "Occupancy Grid"
    _words = "an OccupancyMap"
    _defaults: ClassVar = {
        **CellMap._defaults,
        "default_value": 0.5,
        "layer_name": "probabilityLayer",
        "occupied_threshold": OCCUPIED_THRESHOLD,
        "free_threshold": FREE_THRESHOLD,
        "probability_saturation": SATURATION,
    }

    @partial(in_call_forms, row="occupancy_map")
    def __init__(
        self,
        width: Any = 10,
        height: Any = None,
        resolution: Any = None,
        *,
        grid_origin_in_local: ArrayLike | None = None,
        local_origin_in_world: ArrayLike | None = None,
        grid_location_in_world: ArrayLike | None = None,
        default_value: Any = None,
        layer_name: str | None = None,
        one_based: Any = None,
        occupied_threshold: float | None = None,
        free_threshold: float | None = None,
        probability_saturation: ArrayLike | None = None,
        frame: str = "world",
    ) -> None:
        """Make a map of width x height metres (10 x 10) whose cells are `default_value` (0.5).

        MATLAB's forms work too: `(rows, cols, resolution, "grid")`, `(matrix)`, `(matrix,
        resolution)`, `(map)`, `(map, resolution)`, with properties as keywords in either spelling.
        A matrix has probabilities, or True and False. A map's cells in another resolution have the
        largest probability of the cells that they share area with.
        """
        keywords = {
            "grid_origin_in_local": grid_origin_in_local,
            "local_origin_in_world": local_origin_in_world,
            "grid_location_in_world": grid_location_in_world,
            "default_value": default_value,
            "layer_name": layer_name,
            "one_based": one_based,
            "occupied_threshold": occupied_threshold,
            "free_threshold": free_threshold,
            "probability_saturation": probability_saturation,
        }
        self._begin(width, height, resolution, frame, keywords)
        self._cells = np.clip(self._cells, *_log_odds(np.array(self._saturation)))

    def _set_limits(self, properties: dict[str, Any]) -> None:
        self._saturation = _saturation(properties.pop("probability_saturation"))
        self._occupied_threshold, self._free_threshold = _thresholds(
            properties.pop("occupied_threshold"), properties.pop("free_threshold")
        )

    def _changed(self) -> None:
        """Forget what was computed from the cells."""
        self._binary: BinaryOccupancyMap | None = None

    def _cell_value(self, value: Any, what: str) -> Any:
        """Return a probability, checked."""
        return float(_probabilities(number(value, what), what))

    @property
    def occupied_threshold(self) -> float:
        """Probability above which a cell is occupied."""
        return self._occupied_threshold

    @occupied_threshold.setter
    def occupied_threshold(self, value: float) -> None:
        self._occupied_threshold, _ = _thresholds(value, self._free_threshold)
        self._changed()

    @property
    def free_threshold(self) -> float:
        """Probability below which a cell is free."""
        return self._free_threshold

    @free_threshold.setter
    def free_threshold(self, value: float) -> None:
        _, self._free_threshold = _thresholds(self._occupied_threshold, value)

    @property
    def probability_saturation(self) -> Floats:
        """Least and greatest probability of a cell, (2,); assigning limits the cells.

        The limits lie in 0 … 0.5 and 0.5 … 1, without 0 and 1: no observation changes a certainty.
        """
        return np.array(self._saturation)

    @probability_saturation.setter
    def probability_saturation(self, value: ArrayLike) -> None:
        self._saturation = _saturation(value)
        self._cells = np.clip(self._cells, *_log_odds(np.array(self._saturation)))
        self._changed()

    @property
    def data_type(self) -> str:
        """Type of a cell: "double", a probability."""
        return "double"

    def __repr__(self) -> str:
        (x_0, x_1), (y_0, y_1) = self.x_world_limits, self.y_world_limits
        counts = np.bincount(self.check_occupancy().ravel() + 1, minlength=3).tolist()
        return (
            f"<OccupancyMap {self._rows} rows x {self._columns} columns, "
            f"{self.resolution:g} cells/m, "
            f"x {x_0:g} … {x_1:g} m, y {y_0:g} … {y_1:g} m, "
            f"{counts[2]} occupied, {counts[1]} free, {counts[0]} unknown>"
        )

    def occupancy_matrix(self, form: str = "probability") -> NDArray[Any]:
        """Return probabilities (rows, columns), row 0 on top.

        With "ternary" they are int8: 0 free, 1 occupied, −1 unknown.
        """
        if form not in ("probability", "ternary"):
            raise ValueError(f"form: {form!r}, expected 'probability' or 'ternary'")
        return self.check_occupancy() if form == "ternary" else _probability(self._cells)

    @in_call_forms
    def get_occupancy(
        self,
        points: ArrayLike | None = None,
        size: ArrayLike | None = None,
        *,
        frame: str = "world",
        return_valid: bool = False,
    ) -> Any:
        """Return probabilities at n points, of a block or of the map.

        Forms and shapes are those of `BinaryOccupancyMap.get_occupancy`: `default_value` off the
        map, and with `return_valid` a tuple of the values and which places lie on the map.
        """
        places = places_of(self, points, size, frame)
        values = np.where(places.inside, _probability(places.read(self._cells)), self.default_value)
        return (values, places.inside) if return_valid else values

    @in_call_forms
    def check_occupancy(
        self,
        points: ArrayLike | None = None,
        size: ArrayLike | None = None,
        *,
        frame: str = "world",
        return_valid: bool = False,
    ) -> Any:
        """Return `get_occupancy` in int8: 0 free, 1 occupied, −1 unknown or off the map."""
        places = places_of(self, points, size, frame)
        log_odds = places.read(self._cells)
        values = np.full(places.inside.shape, UNKNOWN, np.int8)
        values[places.inside & (log_odds > _log_odds(self._occupied_threshold))] = OCCUPIED
        values[places.inside & (log_odds < _log_odds(self._free_threshold))] = FREE
        return (values, places.inside) if return_valid else values

    @in_call_forms
    def update_occupancy(
        self, points: ArrayLike, values: ArrayLike | None = None, *, frame: str = "world"
    ) -> None:
        """Integrate observations: one probability, or one per point, or a block.

        True stands for 0.7, False for 0.4. A point that is named twice is observed twice. Without
        `values` the first argument is a matrix with one observation for each cell. Observations of
        0 and 1 take a cell to its saturation limit.
        """
        if values is None:
            observed = _observations(points, "observations")
            if observed.shape != self.grid_size:
                raise ValueError(
                    f"observations: the shape {observed.shape}, expected {self.grid_size}"
                )
            places = places_of(self, None, None, frame)
        else:
            places, observed = places_to_write(self, points, _observations(values, "values"), frame)

        np.add.at(self._cells, places.cells, observed[places.within])
        changed = self._cells[places.cells]
        self._cells[places.cells] = np.clip(changed, *_log_odds(np.array(self._saturation)))
        self._changed()

    def _stored(self, values: Any, what: str) -> Floats:
        """Return the log-odds of probabilities, within the saturation limits."""
        return np.asarray(_log_odds_of(_probabilities(values, what), self._saturation))

    def _grown(self, cells: int) -> Floats:
        return largest_nearby(self._cells, cells)

    def raycast(
        self, p1: ArrayLike, p2: ArrayLike, angle: float | None = None
    ) -> tuple[Ints, Ints]:
        """Return the cells under a segment or a ray, as `BinaryOccupancyMap.raycast`."""
        return self.occupied_cells().raycast(p1, p2, angle)

    def ray_intersection(
        self,
        pose: ArrayLike,
        angles: ArrayLike,
        max_range: float,
        threshold: float | None = None,
    ) -> Floats:
        """Return the points where rays first meet a cell above a threshold, or NaN.

        Without a threshold it is `occupied_threshold`. See `BinaryOccupancyMap.ray_intersection`.
        """
        return self.occupied_cells(threshold).ray_intersection(pose, angles, max_range)

    def occupied_cells(self, threshold: float | None = None) -> BinaryOccupancyMap:
        """Return a map of the cells above a probability, `occupied_threshold` by default.

        It is computed once until the cells change, so don't change it.
        """
        if threshold is None and self._binary is not None:
            self._binary.grid_origin_in_local = self.grid_origin_in_local
            self._binary.local_origin_in_world = self.local_origin_in_world
            self._binary.one_based = self.one_based
            return self._binary

        limit = self._occupied_threshold if threshold is None else threshold
        log_odds = _log_odds(float(_probabilities(number(limit, "threshold"), "threshold")))
        binary = BinaryOccupancyMap.from_matrix(
            self._cells > log_odds,
            self.resolution,
            grid_origin_in_local=self.grid_origin_in_local,
            local_origin_in_world=self.local_origin_in_world,
            one_based=self.one_based,
        )
        if threshold is None:
            self._binary = binary
        return binary

    def insert_ray(
        self,
        start: ArrayLike,
        rays: ArrayLike | Scan,
        *others: Any,
        angles: Any = None,
        max_range: float | None = None,
        inverse_model: ArrayLike | None = None,
    ) -> None:
        """Integrate observations: a miss for cells that a ray goes through, a hit at its end.

        Forms: `insert_ray(start, endpoints)`, `insert_ray(pose, ranges, angles, max_range)`, or
        with an object that has `ranges` and `angles`: `insert_ray(pose, scan, max_range)`; each
        may end with the probabilities of miss and hit ([0.4 0.7]). A ray of `max_range` or more
        misses over `max_range` metres, and its last cells are not updated; NaN is skipped.
        """
        from rfly_terrain.occupancy import cell_ray_kernels as ray_kernels

        names = _ray_arguments(start, rays, others)
        options = {"angles": angles, "max_range": max_range, "inverse_model": inverse_model}
        for name, value in names.items():
            if options[name] is not None:
                raise ValueError(f"{name}: given twice")
            options[name] = value

        model = numbers(
            (MISS, HIT) if options["inverse_model"] is None else options["inverse_model"],
            "inverse_model",
        ).reshape(-1)
        if model.shape != (2,) or not (0.0 < model[0] <= 0.5 <= model[1] < 1.0):
            raise ValueError(
                f"inverse_model: {model.tolist()}, expected [miss, hit] with "
                "0 < miss ≤ 0.5 ≤ hit < 1"
            )
        miss, hit = _log_odds(model).tolist()

        # one observation a cell and ray
        observed = observed_rays(self, start, rays, options["angles"], options["max_range"])
        cells, offsets, is_end = touched_cells(
            segments_between(observed.start, observed.ends), self._rows, self._columns
        )
        ray_kernels.integrate(
            self._cells,
            cells,
            offsets,
            is_end,
            observed.is_hit,
            (miss, hit),
            (_log_odds(self._saturation[0]).item(), _log_odds(self._saturation[1]).item()),
        )
        self._changed()

    def _values_of(self, source: OccupancyMap) -> tuple[Floats, Bools]:
        values, covered = super()._values_of(source)
        return np.clip(values, *_log_odds(np.array(self._saturation))), covered

    def to_occupancy_grid(self) -> tuple[dict[str, Any], NDArray[np.int8]]:
        """Return (info, data) of a nav_msgs/OccupancyGrid, see `BinaryOccupancyMap`.

        Data are percentages, rounded, and −1 where the probability is 0.5: nothing is known.
        """
        x, y = self.grid_location_in_world.tolist()
        info = {"width": self._columns, "height": self._rows, "resolution": 1.0 / self.resolution}
        percent = np.rint(100.0 * _probability(self._cells)).astype(np.int8)
        data = np.where(self._cells == 0.0, np.int8(UNKNOWN), percent)
        return {**info, "origin": (x, y, 0.0)}, data[::-1].ravel()

    @classmethod
    def from_occupancy_grid(cls, info: Mapping[str, Any], data: ArrayLike) -> Self:
        """Return the map of a nav_msgs/OccupancyGrid's info and data, see `to_occupancy_grid`.

        Negative values become 0.5.
        """
        from rfly_terrain.occupancy.files import values_of_message

        values, resolution, origin = values_of_message(info, data)
        if (values > 100).any():
            raise ValueError(f"data: {values.max():g}, expected percentages up to 100")
        cells = np.where(values < 0, 0.5, values / 100.0)
        return cls(cells, resolution, local_origin_in_world=origin)

    # MATLAB's names; what they take is in call_forms.CALL_FORMS
    DataType = data_type
    OccupiedThreshold = occupied_threshold
    FreeThreshold = free_threshold
    ProbabilitySaturation = probability_saturation
    occupancyMatrix = occupancy_matrix
    getOccupancy: Callable[..., Any] = get_occupancy
    checkOccupancy: Callable[..., Any] = check_occupancy
    updateOccupancy: Callable[..., Any] = update_occupancy
    rayIntersection = ray_intersection
    insertRay = insert_ray


def _ray_arguments(start: Any, rays: Any, others: tuple[Any, ...]) -> dict[str, Any]:
    """Return the names of insert_ray's further arguments in position."""
    if isinstance(rays, Scan):
        names = ["max_range", "inverse_model"]
    elif np.size(start) == 3:
        names = ["angles", "max_range", "inverse_model"]
    else:
        names = ["inverse_model"]
    if len(others) > len(names):
        raise ValueError(f"{2 + len(others)} arguments, expected at most {2 + len(names)}")
    return dict(zip(names, others, strict=False))


def _probabilities(values: Any, what: str) -> Floats:
    """Return probabilities of any shape."""
    array = numbers(values, what)
    if ((array < 0.0) | (array > 1.0)).any():
        wrong = array[(array < 0.0) | (array > 1.0)]
        raise ValueError(f"{what}: {wrong.reshape(-1)[0]:g}, expected probabilities, 0 … 1")
    return array


def _observations(values: Any, what: str) -> Floats:
    """Return the log-odds of observations, which may be True and False."""
    if np.asarray(values).dtype == bool:
        values = np.where(values, HIT, MISS)
    with np.errstate(divide="ignore"):
        return np.clip(_log_odds(_probabilities(values, what)), -_CERTAIN, _CERTAIN)


_CERTAIN = 1e3
"""Log-odds of an observation of 1: beyond any saturation limit."""


def _saturation(value: Any) -> tuple[float, float]:
    limits = numbers(value, "probability_saturation").reshape(-1)
    if limits.size != 2 or not 0.0 < limits[0] <= 0.5 <= limits[1] < 1.0:
        raise ValueError(
            f"probability_saturation: {limits.tolist()}, expected [min, max] with "
            "0 < min ≤ 0.5 ≤ max < 1"
        )
    return float(limits[0]), float(limits[1])


def _thresholds(occupied: Any, free: Any) -> tuple[float, float]:
    """Return both thresholds, checked."""
    above = float(_probabilities(number(occupied, "occupied_threshold"), "occupied_threshold"))
    below = float(_probabilities(number(free, "free_threshold"), "free_threshold"))
    if below > above:
        raise ValueError(
            f"free_threshold: {below:g} is above the occupied_threshold {above:g}, expected at "
            "most that"
        )
    return above, below


def _log_odds(probability: Any) -> Any:
    """Return ln(p / (1 − p)); infinite for 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.log(probability) - np.log1p(-np.asarray(probability, float))


def _log_odds_of(probability: Any, limits: tuple[float, float]) -> Any:
    """Return the log-odds of probabilities within the saturation limits."""
    return _log_odds(np.clip(probability, *limits))


def _probability(log_odds: Floats) -> Floats:
    """Return 1 / (1 + exp(−l))."""
    return 1.0 / (1.0 + np.exp(-log_odds))
