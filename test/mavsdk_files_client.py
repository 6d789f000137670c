# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A process that reads a vehicle's files and metadata by MAVSDK, and prints what it saw as JSON.

python mavsdk_files_client.py PORT SYSTEM_ID FOLDER

FOLDER: where the parameters' file is downloaded to.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mavsdk_client import connect, first

FILE = "/metadata/parameters.json"


async def read(system: Any, folder: str) -> dict[str, Any]:
    """List, download and compare; return what came of it."""
    from mavsdk.asyncio.plugins.component_metadata import ComponentMetadataAsync
    from mavsdk.asyncio.plugins.ftp import FtpAsync
    from mavsdk.asyncio.plugins.info import InfoAsync
    from mavsdk.plugins.component_metadata import MetadataType
    from mavsdk.plugins.ftp import FtpError

    files = FtpAsync(system)
    root = await files.list_directory("/")
    metadata_files = await files.list_directory("/metadata")
    seen: dict[str, Any] = {
        "folders": sorted(entry.name for entry in root.entries),
        "files": sorted(entry.name for entry in metadata_files.entries),
    }
    for burst in (False, True):
        async for _ in files.download(FILE, f"{folder}/{burst}", burst):
            pass
    local = f"{folder}/{True}/parameters.json"
    seen["same"] = await files.are_files_identical(local, FILE)
    try:
        await files.remove_file(FILE)
    except FtpError as error:
        seen["removed"] = str(error)

    metadata = ComponentMetadataAsync(system)

    def is_there(update: Any) -> bool:
        return bool(update.type == MetadataType.PARAMETER)

    waiting = asyncio.ensure_future(first(metadata.subscribe_metadata_available(), is_there))
    await asyncio.sleep(0)  # it has subscribed
    await metadata.request_autopilot_component()
    update = await waiting
    seen["metadata"] = json.loads(update.json_metadata)

    version = await InfoAsync(system).get_version()
    seen["version"] = [version.flight_sw_major, version.flight_sw_minor, version.flight_sw_patch]
    return seen


async def main(port: int, system_id: int, folder: str) -> None:
    async with connect(port, system_id) as system:
        print(json.dumps(await read(system, folder)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
