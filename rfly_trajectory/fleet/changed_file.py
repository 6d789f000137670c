# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fleet files whose entries are changed and written again."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

from rfly_common.config.documents import parse_mapping
from rfly_common.config.marked_yaml import dump_yaml
from rfly_trajectory.fleet.deconflict import Change
from rfly_trajectory.fleet.fleet import Fleet, Vehicle
from rfly_trajectory.fleet.fleet_file import MAX_VEHICLES, parse_fleet, read_fleet_file


class FleetFile:
    """A fleet file, its fleet, and its entries, each a group of vehicles that change together."""

    def __init__(
        self, name_or_path: str | os.PathLike[str], max_vehicles: int = MAX_VEHICLES
    ) -> None:
        """Read a fleet file, or a shipped one by its name. Raises ConfigError as `load_fleet`."""
        data, self.file, name = read_fleet_file(name_or_path, max_vehicles)
        self._folder = FilePath(self.file).parent
        self.fleet: Fleet = parse_fleet(data, self.file, name, self._folder, max_vehicles)
        self._document: dict[str, Any] = parse_mapping(
            data, self.file, "version and vehicles"
        ).value

    @property
    def groups(self) -> list[int]:
        """Numbers of vehicles of the entries."""
        common = self._document.get("defaults", {}).get("count", 1)
        return [int(entry.get("count", common)) for entry in self._document["vehicles"]]

    def entries(self) -> Iterator[tuple[str, list[Vehicle]]]:
        """Yield the name and the vehicles of each entry."""
        vehicles = iter(self.fleet.vehicles)
        for entry, size in zip(self._document["vehicles"], self.groups, strict=True):
            group = [next(vehicles) for _ in range(size)]
            yield str(entry.get("name", group[0].name)), group

    def changed(self, changes: Sequence[Change]) -> str:
        """Return the file's content with a change of each entry; comments are lost.

        Files that it names are named by their whole path.
        """
        document = copy.deepcopy(self._document)
        defaults = document.get("defaults", {})
        for entry, (_, group), change in zip(
            document["vehicles"], self.entries(), changes, strict=True
        ):
            entry.update(_changed_keys(entry, defaults, group, change))
        for part in (defaults, *document["vehicles"]):
            if "file" in part.get("shape", {}):
                part["shape"]["file"] = str((self._folder / part["shape"]["file"]).resolve())
        return dump_yaml(document, default_flow_style=None, width=120)


def _changed_keys(
    entry: dict[str, Any], defaults: dict[str, Any], group: Sequence[Vehicle], change: Change
) -> dict[str, Any]:
    """Return the keys of an entry that a change sets, with their values."""
    keys: dict[str, Any] = {}
    first = group[0]
    if change.later or change.between:
        delay = first.delay + change.later
        keys["delay"] = delay
        if len(group) > 1:
            keys["delay"] = {"first": delay, "step": group[1].delay - first.delay + change.between}
    if change.higher:
        keys["altitude"] = {"absolute" if first.absolute else "agl": first.height + change.higher}
    if change.share != 1.0:
        speed = entry.get("speed", defaults.get("speed"))
        cruise = round(first.profile.cruise * change.share, 6)
        keys["speed"] = {**speed, "cruise": cruise} if isinstance(speed, dict) else cruise
    return keys
