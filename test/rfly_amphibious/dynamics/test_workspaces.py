# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Memory of kernels: a record must not outlive the array that it lies in.

numba frees an array after the last place that names it. A record, and a view of one, is only its
address. `simulate` once computed in memory that was free already: another thread could take it.
"""

from __future__ import annotations

import pytest
from numba.core import ir
from numba.core.compiler import run_frontend
from numba.core.postproc import PostProcessor

from rfly_amphibious.dynamics import lane_stepping, stepping, vehicle_batch

KERNELS = {
    kernel.py_func.__name__: kernel.py_func
    for kernel in (
        stepping.simulate,
        stepping.derivatives,
        lane_stepping.simulate_lanes,
        vehicle_batch.may_touch_soon,
    )
}


def used_after_free(function):
    """Return the names that a kernel uses though the workspace that they lie in is freed."""
    code = run_frontend(function)
    PostProcessor(code).run(emit_dels=True)
    statements = [
        (label, place, statement)
        for label, block in code.blocks.items()
        for place, statement in enumerate(block.body)
    ]
    assigned = [each for *_, each in statements if isinstance(each, ir.Assign)]
    makers = {
        each.target.name
        for each in assigned
        if isinstance(each.value, ir.Global | ir.FreeVar) and each.value.name.startswith("new_")
    }
    arrays = {
        each.target.name
        for each in assigned
        if isinstance(each.value, ir.Expr) and makers & {v.name for v in each.value.list_vars()}
    }
    assert arrays

    # what is made of an array lies in it, but for results of kernels that take it, which are none
    within = set(arrays)
    while True:
        more = {
            each.target.name
            for each in assigned
            if isinstance(each.value, ir.Var | ir.Expr)
            and within & {variable.name for variable in each.list_vars()}
        }
        if more <= within:
            break
        within |= more

    # statements that can follow the one that frees an array
    wrong = set()
    for label, place, statement in statements:
        if not isinstance(statement, ir.Del) or statement.value not in arrays:
            continue
        reached = {label}
        todo = [label]
        while todo:
            for following in code.blocks[todo.pop()].terminator.get_targets():
                if following not in reached:
                    reached.add(following)
                    todo.append(following)
        later = [
            each
            for other, at, each in statements
            if (other in reached - {label} or (other == label and at > place))
            and not isinstance(each, ir.Del)
        ]
        wrong |= within & {variable.name for each in later for variable in each.list_vars()}
    return wrong


@pytest.mark.parametrize("name", KERNELS)
def test_no_record_outlives_the_array_that_it_lies_in(name):
    assert not used_after_free(KERNELS[name])


def test_a_record_that_does_is_found():
    from rfly_amphibious.dynamics.records import new_workspace

    def bad(rows):
        workspace = new_workspace()
        x = workspace[0].x
        for row in rows:
            row[0] = x.position[0]

    def good(rows):
        workspace = new_workspace()
        for row in rows:
            row[0] = workspace[0].x.position[0]

    assert "x" in used_after_free(bad)
    assert not used_after_free(good)
