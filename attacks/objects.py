# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""A storm of objects that are placed, moved and removed, in any order and again and again.

ue_bridge_node has to answer each request as a plain dictionary would, and to list the same objects
at the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from claims import domain

from attacks.messages import NODES, Target
from attacks.table import Result

TRIES = 5_000
SHORT_TRIES = 200
MOST = 50
"""Objects at one time; beyond it they are removed."""
NO_IDS = (-1, -(2**31), 2**31 - 1, 0)
"""Ids that no object has."""


def storm(rng: random.Random, tries: int) -> Result:
    """Place, move and remove objects, also those that are gone or never were."""
    from rfly_suite.srv import ListObjects, MoveObject, PlaceObject, RemoveObject

    known: set[int] = set()
    gone: list[int] = [*NO_IDS]
    failures: list[str] = []

    with ExitStack() as stack:
        executable, parameters = NODES["ue_bridge_node"]
        target = Target(stack, executable, parameters, stack.enter_context(domain()))
        clients = {
            kind: target.peer.node.create_client(kind, name)
            for kind, name in (
                (PlaceObject, "place_object"),
                (MoveObject, "move_object"),
                (RemoveObject, "remove_object"),
                (ListObjects, "list_objects"),
            )
        }
        for client in clients.values():
            target.peer.spin_until(client.service_is_ready, 60.0)

        def ask(kind: Any, **values: Any) -> Any:
            future = clients[kind].call_async(kind.Request(**values))
            if not target.wait_for([future]):
                raise TimeoutError(f"{kind.__name__} {values}: {target.problem() or 'no answer'}")
            return future.result()

        def place() -> tuple[bool, bool]:
            answer = ask(
                PlaceObject, vehicle_type=30, x=rng.uniform(-50.0, 50.0), use_ground_packet=True
            )
            known.add(answer.id)
            return answer.success, True

        def move(number: int) -> tuple[bool, bool]:
            answer = ask(MoveObject, id=number, x=rng.uniform(-50.0, 50.0))
            return answer.success, number in known

        def remove(number: int) -> tuple[bool, bool]:
            was_known = number in known
            answer = ask(RemoveObject, id=number)
            known.discard(number)
            gone.append(number)
            return answer.success, was_known

        try:
            for _ in range(tries):
                number = rng.choice([*known, *gone[-20:]])
                action: Callable[[], tuple[bool, bool]]
                action = rng.choice(
                    [place, lambda n=number: move(n), lambda n=number: remove(n)]
                    if len(known) < MOST
                    else [lambda n=number: remove(n)]
                )
                success, expected = action()
                if success != expected:
                    failures.append(f"object {number}: success is {success}, not {expected}")
            listed = set(ask(ListObjects).objects.id)
            if listed != known:
                failures.append(f"lists {sorted(listed)}, expected {sorted(known)}")
        except TimeoutError as error:
            failures.append(str(error))
        failures += filter(None, [target.problem()])
        return Result(
            "objects placed and removed",
            tries,
            len(failures),
            target.memory_mb(),
            target.longest_stall_s,
            tuple(failures),
        )


ATTACKS: dict[str, Callable[[random.Random, int], Result]] = {"objects": storm}
