"""Shard of a fleet: the vehicles of one of several nodes."""

from __future__ import annotations

import re

from rfly_common.errors import ConfigError

MAX_SHARDS = 10_000


def shard_range(shard: str, vehicles: int) -> range:
    """Indices of the vehicles of a shard `i/n`, i from 0 to n - 1: consecutive, as even as can be, and each vehicle in
    exactly one shard. Raises ConfigError for anything else than `i/n`.
    """
    found = re.fullmatch(r"\s*([0-9]{1,5})\s*/\s*([0-9]{1,5})\s*", shard)
    if found is None or not int(found[1]) < int(found[2]) <= MAX_SHARDS:
        raise ConfigError(
            f"shard: {shard!r}, expected i/n with i from 0 to n - 1 and n up to {MAX_SHARDS}, such as 0/2 and 1/2 for "
            "the two halves of a fleet"
        )
    i, n = int(found[1]), int(found[2])
    return range(i * vehicles // n, (i + 1) * vehicles // n)
