# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""MAVLink's component metadata: JSON files that name and explain a vehicle's parameters.

https://mavlink.io/en/services/component_information.html; the files are served by file transfer.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from rfly_mavlink.dialect.wire import newer_message
from rfly_mavlink.stations.file_transfer import file_crc
from rfly_mavlink.stations.parameter_protocol import ControllerGains, FixedParameter, Tunables

VERSION = (0, 1, 0)
"""Version of the package."""
INTERFACE_VERSION = (1, 16, 0)
"""PX4's version whose modes, commands and encodings the vehicle follows."""
FOLDER = "metadata"
"""Folder of the files."""
GENERAL = "general.json"
"""File that names the other ones."""
PARAMETERS = "parameters.json"
"""File of the parameters."""
_TYPE_PARAMETER = 1
"""COMP_METADATA_TYPE_PARAMETER."""
_FORMAT_VERSION = 1
"""Version of both files' formats, as PX4 writes and QGroundControl reads them."""


def version_number(version: tuple[int, int, int]) -> int:
    """Return a version as in AUTOPILOT_VERSION, of FIRMWARE_VERSION_TYPE_DEV."""
    major, minor, patch = version
    return major << 24 | minor << 16 | patch << 8


class ComponentMetadata:
    """The metadata files of one vehicle; gains appear once its controller has reported them."""

    def __init__(
        self, uav_type: str, fixed: dict[str, FixedParameter], gains: ControllerGains
    ) -> None:
        self._uav_type = uav_type
        self._fixed = fixed
        self._gains = gains
        self._ranges: dict[str, tuple[float, float]] | None = None
        self._files: dict[str, bytes] = {}

    def files(self) -> dict[str, bytes]:
        """Return the files by name."""
        if self._ranges != self._gains.ranges:
            self._ranges = dict(self._gains.ranges)
            parameters = _json({"version": _FORMAT_VERSION, "parameters": self._parameters()})
            general = {
                "version": _FORMAT_VERSION,
                "vendorName": "rfly_suite",
                "modelName": self._uav_type,
                "firmwareVersion": ".".join(map(str, VERSION)),
                "metadataTypes": [
                    {
                        "type": _TYPE_PARAMETER,
                        "uri": f"mftp:///{FOLDER}/{PARAMETERS}",
                        "fileCrc": file_crc(parameters),
                    }
                ],
            }
            self._files = {GENERAL: _json(general), PARAMETERS: parameters}
        return self._files

    def message(self, ms: int) -> Any:
        """Return COMPONENT_METADATA."""
        uri = f"mftp:///{FOLDER}/{GENERAL}".encode()
        return newer_message("COMPONENT_METADATA", ms, file_crc(self.files()[GENERAL]), uri)

    def _parameters(self) -> list[dict[str, Any]]:
        tunables = [
            _parameter(
                field.metadata["name"],
                shortDesc=field.metadata["text"],
                units=field.metadata["unit"],
                default=field.default,
                min=field.metadata["low"],
                max=field.metadata["high"],
            )
            for field in dataclasses.fields(Tunables)
        ]
        gains = [
            _parameter(name, shortDesc=self._gains.texts.get(name, ""), min=low, max=high)
            for name, (low, high) in self._gains.ranges.items()
        ]
        fixed = [
            {
                "name": name,
                "type": "Int32",
                "group": name.split("_")[0],
                "shortDesc": parameter.text,
                "default": parameter.value,
                "readOnly": True,
            }
            for name, parameter in self._fixed.items()
        ]
        return [*tunables, *gains, *fixed]


def _parameter(name: str, **properties: Any) -> dict[str, Any]:
    group = name.split("_")[0]
    return {"name": name, "type": "Float", "group": group, "decimalPlaces": 3, **properties}


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=1).encode()
