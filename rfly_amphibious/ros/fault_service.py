# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Service that breaks and mends parts of a running simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rfly_suite.srv import InjectFault

from rfly_amphibious.simulation.faults import Fault, fault_kind, parts_of
from rfly_amphibious.simulation.simulation import Simulation
from rfly_common.config.checks import check_choice, finite_number
from rfly_common.errors import ConfigError
from rfly_terrain.ros.terrain_topics import NO_MAP_YET

MEND = "mend"
"""Kind of a request that ends the faults of a part."""


class FaultService:
    """Service `~/inject_fault` of a simulation, which is None before the first ground."""

    def __init__(
        self,
        node: Node,
        simulation: Callable[[], Simulation | None],
        changed: Callable[[], None],
    ) -> None:
        self._simulation = simulation
        self._changed = changed
        self._log = node.get_logger()
        node.create_service(InjectFault, "~/inject_fault", self._serve)

    def _serve(self, request: Any, response: Any) -> Any:
        """Answer a request."""
        simulation = self._simulation()
        try:
            if simulation is None:
                raise ConfigError(str(NO_MAP_YET))
            if request.kind == MEND:
                self._mend(simulation, request)
            else:
                fault = self._fault(simulation, request)
                simulation.inject(fault)
                self._log.warning(f"{simulation.time:.3f} s: {fault}")
        except ConfigError as error:
            response.message = str(error)
        else:
            response.success = True
            self._changed()
        return response

    def _mend(self, simulation: Simulation, request: Any) -> None:
        """End the faults of a part. Raise ConfigError if it has none."""
        check_choice("part", request.part, parts_of(simulation.model.params))
        if not simulation.mend(request.part):
            raise ConfigError(f"part: {request.part} has no fault to mend")
        self._log.info(f"{simulation.time:.3f} s: {request.part} is mended")

    def _fault(self, simulation: Simulation, request: Any) -> Fault:
        """Return the requested fault from now on."""
        duration = finite_number("duration_s", request.duration_s, "s", at_least=0.0)
        return Fault(
            simulation.time,
            request.part,
            fault_kind(request.kind),
            tuple(float(number) for number in request.value),
            request.quantity,
            duration or None,
        )
