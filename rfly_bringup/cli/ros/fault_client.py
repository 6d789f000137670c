# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Client of amphibious_sim_node's faults, for `rfly sim fault`."""

from __future__ import annotations

from collections.abc import Sequence

from rfly_suite.srv import InjectFault

from rfly_bringup.ros.command_client import CommandClient
from rfly_common.errors import ConfigError


class FaultClient(CommandClient):
    """Client that raises ConfigError if the simulation refuses, or none answers."""

    def __init__(self, namespace: str) -> None:
        super().__init__("rfly_fault", namespace, "amphibious_sim_node", ConfigError)

    def inject(
        self, part: str, kind: str, quantity: str, value: Sequence[float], duration: float
    ) -> None:
        """Break or mend a part; `duration` in s, 0: until it is mended."""
        request = InjectFault.Request(
            part=part, kind=kind, quantity=quantity, value=list(value), duration_s=duration
        )
        self.call(InjectFault, "amphibious_sim_node/inject_fault", request)
