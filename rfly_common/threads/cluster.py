# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Work on a Dask cluster."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rfly_common.errors import ConfigError
from rfly_common.imports import require

CONNECT_TIMEOUT = 10.0
"""Time in which a scheduler has to answer, s."""


def check_dask() -> None:
    """Raise ConfigError with what to install if no Dask cluster can be used."""
    require("distributed", "a Dask cluster")


def on_dask(
    cluster: Any, submit: Callable[[Any], list[Any]], report: Callable[[int, Any], None]
) -> list[Any]:
    """Return the results of the futures that `submit(client)` gives, in their order.

    `cluster`: the address of a scheduler, or a `Client` or `Cluster` of distributed, whose workers
    need this package. `report(number, result)` is called here when a future is done. Raises what
    the work raises, and ConfigError if no scheduler answers.
    """
    check_dask()
    from distributed import Client, as_completed

    if isinstance(cluster, str) and not re.fullmatch(r"(\w+://)?\S+:\d+", cluster):
        raise ConfigError(
            f"Dask: {cluster!r}, expected the address of a scheduler, such as tcp://127.0.0.1:8786"
        )

    borrowed = isinstance(cluster, Client)
    client = cluster
    if not borrowed:
        try:
            client = Client(cluster, timeout=CONNECT_TIMEOUT, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            raise ConfigError(f"Dask: {cluster}: no scheduler answers ({error})") from None

    try:
        futures = submit(client)
        number_of = {future.key: number for number, future in enumerate(futures)}
        for future in as_completed(futures, loop=client.loop):
            report(number_of[future.key], future.result())
        return list(client.gather(futures))
    finally:
        if not borrowed:
            client.close()
