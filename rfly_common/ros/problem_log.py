"""Problems that last, told once when they begin and once when they are over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_TOLD = 20
"""at one time: names that a peer makes up do not fill the log"""


class ProblemLog:
    """By key: a warning for a new problem, a line of information for one that has gone."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._told: dict[object, str] = {}

    def begin(self, key: object, text: str) -> None:
        """There is this problem now."""
        if key not in self._told and len(self._told) < MOST_TOLD:
            self._told[key] = text
            self._logger.warning(text)

    def update(self, problems: Mapping[object, str]) -> None:
        """These are all that there are now."""
        for key, text in problems.items():
            self.begin(key, text)
        for key in self._told.keys() - problems.keys():
            self._logger.info(f"over: {self._told.pop(key)}")
