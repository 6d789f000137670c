# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Array types that the whole suite uses, and a base of tables of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Triple = tuple[float, float, float]


class Rows:
    """Base of dataclasses whose fields are arrays of n rows each."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __len__(self) -> int:
        return len(getattr(self, next(iter(self.__dataclass_fields__))))

    def select(self, rows: Any) -> Self:
        """Return the rows that a mask, index array or slice names, in that order."""
        return type(self)(**{name: getattr(self, name)[rows] for name in self.__dataclass_fields__})

    def concatenate(self, *others: Self) -> Self:
        """Return these rows followed by those of the others."""
        names = self.__dataclass_fields__
        return type(self)(
            **{
                name: np.concatenate([getattr(each, name) for each in (self, *others)])
                for name in names
            }
        )
