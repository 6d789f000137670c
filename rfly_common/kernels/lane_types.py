# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Lanes for numba: `Lanes` are an LLVM vector, and arithmetic with them is that of vectors.

This module registers them when numba is first imported (`jit`). A kernel takes `Lanes` where it
takes numbers: it loads and stores them in the fields (…, LANES) of a record.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_untracked
from numba.core.typeconv import Conversion
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import (
    lower_builtin,
    lower_cast,
    lower_getattr_generic,
    lower_setattr_generic,
    models,
    register_model,
    type_callable,
)

from rfly_common.kernels.lanes import (
    LANES,
    aligned_lane_record,
    any_lane,
    flat,
    lane_record,
    lanes_of,
    lookup,
    numbers,
    where,
)

_DOUBLE = ir.DoubleType()
_VECTOR = ir.VectorType(_DOUBLE, LANES)
_BITS = ir.VectorType(ir.IntType(1), LANES)


class LanesType(types.Type):
    """Type of LANES numbers."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")

    def can_convert_from(self, _context: Any, other: types.Type) -> Conversion | None:
        """Allow a number, which becomes the same number for all."""
        return Conversion.safe if isinstance(other, types.Float | types.Integer) else None

    def unify(self, _context: Any, other: types.Type) -> types.Type | None:
        """Return lanes for lanes and a number."""
        return self if isinstance(other, types.Float | types.Integer) else None


class MaskType(types.Type):
    """Type of LANES truth values."""

    def __init__(self) -> None:
        super().__init__(name="LaneMask")

    def can_convert_from(self, _context: Any, other: types.Type) -> Conversion | None:
        """Allow a truth value, which becomes the same for all."""
        return Conversion.safe if isinstance(other, types.Boolean) else None

    def unify(self, _context: Any, other: types.Type) -> types.Type | None:
        """Return a mask for a mask and a truth value."""
        return self if isinstance(other, types.Boolean) else None


class LaneRowsType(types.Type):
    """Type of rows of lanes in memory: (n, LANES), or (n, `columns`, LANES)."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        super().__init__(name=f"LaneRows({columns})")


class FlatType(types.Type):
    """Type of the plain numbers of a record, one after the other."""

    def __init__(self) -> None:
        super().__init__(name="FlatLanes")


class LaneRecordType(types.Type):
    """Type of a record whose fields have a last axis of LANES."""

    def __init__(self, record: types.Record) -> None:
        self.record = record
        super().__init__(name=f"LaneRecord({record})")


LANES_TYPE = LanesType()
MASK = MaskType()
FLAT = FlatType()


def _primitive(kind: type[types.Type], backend: ir.Type) -> None:
    @register_model(kind)
    class _Model(models.PrimitiveModel):
        def __init__(self, manager: Any, fe_type: types.Type) -> None:
            super().__init__(manager, fe_type, backend)


_primitive(LanesType, _VECTOR)
_primitive(MaskType, _BITS)
_primitive(LaneRowsType, _DOUBLE.as_pointer())
_primitive(FlatType, _DOUBLE.as_pointer())
_primitive(LaneRecordType, ir.IntType(8).as_pointer())


def _same_in_all(builder: Any, value: Any, vector: ir.VectorType) -> Any:
    zero = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, zero)
    pattern = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), pattern)


@lower_cast(types.Float, LanesType)
@lower_cast(types.Integer, LanesType)
def _number_to_lanes(
    context: Any, builder: Any, fromty: types.Type, _toty: types.Type, value: Any
) -> Any:
    return _same_in_all(builder, context.cast(builder, value, fromty, types.float64), _VECTOR)


@lower_cast(types.Boolean, MaskType)
def _bool_to_mask(
    context: Any, builder: Any, fromty: types.Type, _toty: types.Type, value: Any
) -> Any:
    return _same_in_all(builder, context.cast(builder, value, fromty, types.boolean), _BITS)


def _operator(
    function: Any, count: int, kind: types.Type, result: types.Type, lower: Callable[..., Any]
) -> None:
    """Register a function of `count` arguments of a kind; at least one has to be in lanes."""

    @infer_global(function)
    class _Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            if kws or len(args) != count or kind not in args:
                return None
            if all(a == kind or kind.can_convert_from(self.context, a) is not None for a in args):
                return signature(result, *[kind] * count)
            return None

    @lower_builtin(function, *[kind] * count)
    def _lower(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return lower(builder, *args)


_ARITHMETIC = {
    "fadd": (operator.add, operator.iadd),
    "fsub": (operator.sub, operator.isub),
    "fmul": (operator.mul, operator.imul),
    "fdiv": (operator.truediv, operator.itruediv),
}
_COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
}
_LOGIC = {
    "and_": (operator.and_, operator.iand),
    "or_": (operator.or_, operator.ior),
}


def _instruction(name: str) -> Callable[..., Any]:
    """Return what makes the instruction of that name."""
    return lambda builder, *args: getattr(builder, name)(*args)


def _comparison(sign: str) -> Callable[..., Any]:
    """Return what makes a comparison that is false for NaN."""
    return lambda builder, a, b: builder.fcmp_ordered(sign, a, b)


def _less(builder: Any, a: Any, b: Any) -> Any:
    """Make min(a, b), as Python defines it for NaN."""
    return builder.select(builder.fcmp_ordered("<", b, a), b, a)


def _greater(builder: Any, a: Any, b: Any) -> Any:
    """Make max(a, b), as Python defines it for NaN."""
    return builder.select(builder.fcmp_ordered(">", b, a), b, a)


def _unequal(builder: Any, a: Any, b: Any) -> Any:
    """Make a != b, which is true for NaN."""
    return builder.fcmp_unordered("!=", a, b)


for _name, _functions in _ARITHMETIC.items():
    for _function in _functions:
        _operator(_function, 2, LANES_TYPE, LANES_TYPE, _instruction(_name))
for _name, _functions in _LOGIC.items():
    for _function in _functions:
        _operator(_function, 2, MASK, MASK, _instruction(_name))
for _sign, _function in _COMPARISONS.items():
    _operator(_function, 2, LANES_TYPE, MASK, _comparison(_sign))
_operator(operator.ne, 2, LANES_TYPE, MASK, _unequal)
_operator(operator.neg, 1, LANES_TYPE, LANES_TYPE, _instruction("fneg"))
_operator(min, 2, LANES_TYPE, LANES_TYPE, _less)
_operator(max, 2, LANES_TYPE, LANES_TYPE, _greater)


def _intrinsic(name: str) -> Callable[..., Any]:
    def lower(builder: Any, *args: Any) -> Any:
        kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(args))
        return builder.call(
            cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f64"), args
        )

    return lower


_operator(abs, 1, LANES_TYPE, LANES_TYPE, _intrinsic("fabs"))
_operator(math.sqrt, 1, LANES_TYPE, LANES_TYPE, _intrinsic("sqrt"))
_operator(np.floor, 1, LANES_TYPE, LANES_TYPE, _intrinsic("floor"))


def _one_by_one(function: Any, count: int) -> None:
    """Register a function of libm's that is called for each of the lanes."""

    @infer_global(function)
    class _Template(AbstractTemplate):
        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            if kws or len(args) != count or LANES_TYPE not in args:
                return None
            return signature(LANES_TYPE, *[LANES_TYPE] * count)

    @lower_builtin(function, *[LANES_TYPE] * count)
    def _lower(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        plain = signature(types.float64, *[types.float64] * count)
        call = context.get_function(function, plain)
        result = ir.Constant(_VECTOR, ir.Undefined)
        for lane in range(LANES):
            place = ir.Constant(ir.IntType(32), lane)
            value = call(builder, [builder.extract_element(arg, place) for arg in args])
            result = builder.insert_element(result, value, place)
        return result


_LIBM: dict[Callable[..., Any], int] = {
    **dict.fromkeys((math.sin, math.cos, math.tan, math.atan, math.tanh, math.exp), 1),
    math.hypot: 2,
    operator.pow: 2,
}
for _called, _count in _LIBM.items():
    _one_by_one(_called, _count)


@type_callable(where)
def _type_where(context: Any) -> Callable[..., Any]:
    def typer(condition: types.Type, yes: types.Type, no: types.Type) -> types.Type | None:
        if condition == MASK:
            return (
                MASK if yes == MASK or no == MASK or isinstance(yes, types.Boolean) else LANES_TYPE
            )
        return context.unify_types(yes, no) if isinstance(condition, types.Boolean) else None

    return typer


@lower_builtin(where, types.Any, types.Any, types.Any)
def _lower_where(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    yes, no = (context.cast(builder, args[i], sig.args[i], sig.return_type) for i in (1, 2))
    return impl_ret_untracked(context, builder, sig.return_type, builder.select(args[0], yes, no))


@type_callable(any_lane)
def _type_any_lane(_context: Any) -> Callable[..., Any]:
    return lambda condition: (
        types.boolean if condition == MASK or isinstance(condition, types.Boolean) else None
    )


@lower_builtin(any_lane, MaskType)
def _lower_any_lane(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    bits = ir.IntType(LANES)
    return builder.icmp_unsigned("!=", builder.bitcast(args[0], bits), ir.Constant(bits, 0))


@lower_builtin(any_lane, types.Boolean)
def _lower_any(_context: Any, _builder: Any, _sig: Any, args: Any) -> Any:
    return args[0]


@type_callable(lookup)
def _type_lookup(_context: Any) -> Callable[..., Any]:
    def typer(table: types.Type, index: types.Type) -> types.Type | None:
        if not isinstance(table, types.Array):
            return None
        return LANES_TYPE if index == LANES_TYPE else types.float64

    return typer


@lower_builtin(lookup, types.Array, types.Float)
def _lower_lookup(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    table = context.make_array(sig.args[0])(context, builder, args[0])
    index = builder.fptosi(args[1], cgutils.intp_t)
    number = builder.load(builder.gep(table.data, [index]))
    return context.cast(builder, number, sig.args[0].dtype, types.float64)


@lower_builtin(lookup, types.Array, LanesType)
def _lower_lane_lookup(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    table = context.make_array(sig.args[0])(context, builder, args[0])
    number = context.get_data_type(sig.args[0].dtype)
    row = ir.VectorType(number, LANES)
    integers = ir.VectorType(cgutils.intp_t, LANES)
    pointers = ir.VectorType(number.as_pointer(), LANES)

    # addresses
    size = ir.Constant(cgutils.intp_t, context.get_abi_sizeof(number))
    start = _same_in_all(builder, builder.ptrtoint(table.data, cgutils.intp_t), integers)
    offset = builder.mul(builder.fptosi(args[1], integers), _same_in_all(builder, size, integers))
    addresses = builder.inttoptr(builder.add(start, offset), pointers)

    # one instruction fetches all numbers
    short = "f64" if number == _DOUBLE else "f32"
    kind = ir.FunctionType(row, [pointers, ir.IntType(32), _BITS, row])
    gather = cgutils.get_or_insert_function(
        builder.module, kind, f"llvm.masked.gather.v{LANES}{short}.v{LANES}p0"
    )
    align = ir.Constant(ir.IntType(32), context.get_abi_alignment(number))
    result = builder.call(
        gather, [addresses, align, ir.Constant(_BITS, [1] * LANES), ir.Constant(row, ir.Undefined)]
    )
    return result if number == _DOUBLE else builder.fpext(result, _VECTOR)


# memory


def _vector_at(builder: Any, numbers: Any, index: Any) -> Any:
    start = builder.mul(index, ir.Constant(index.type, LANES))
    return builder.bitcast(builder.gep(numbers, [start]), _VECTOR.as_pointer())


def _index(context: Any, builder: Any, rows: LaneRowsType, kind: types.Type, index: Any) -> Any:
    if isinstance(kind, types.BaseTuple):
        kinds: tuple[types.Type, ...] = kind.types  # type: ignore[attr-defined]  # of a tuple's members
        parts = zip(cgutils.unpack_tuple(builder, index), kinds, strict=True)
        first, second = (context.cast(builder, part, each, types.intp) for part, each in parts)
        return builder.add(builder.mul(first, ir.Constant(first.type, rows.columns)), second)
    return context.cast(builder, index, kind, types.intp)


@infer_global(operator.getitem)
class _GetRow(AbstractTemplate):
    key = operator.getitem

    def generic(self, args: Any, kws: Any) -> Any:
        rows, index = args
        if isinstance(rows, LaneRowsType):
            return signature(LANES_TYPE, rows, index)
        return signature(types.float64, rows, types.intp) if rows == FLAT else None


@infer_global(operator.setitem)
class _SetRow(AbstractTemplate):
    key = operator.setitem

    def generic(self, args: Any, kws: Any) -> Any:
        rows, index, _ = args
        if isinstance(rows, LaneRowsType):
            return signature(types.none, rows, index, LANES_TYPE)
        return signature(types.none, rows, types.intp, types.float64) if rows == FLAT else None


@lower_builtin(operator.getitem, LaneRowsType, types.Any)
def _get_row(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    index = _index(context, builder, sig.args[0], sig.args[1], args[1])
    return builder.load(_vector_at(builder, args[0], index), align=8)


@lower_builtin(operator.setitem, LaneRowsType, types.Any, LanesType)
def _set_row(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    index = _index(context, builder, sig.args[0], sig.args[1], args[1])
    builder.store(args[2], _vector_at(builder, args[0], index), align=8)
    return context.get_dummy_value()


@lower_builtin(operator.getitem, FlatType, types.Integer)
def _get_number(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    return builder.load(builder.gep(args[0], [args[1]]))


@lower_builtin(operator.setitem, FlatType, types.Integer, types.Float)
def _set_number(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    builder.store(args[2], builder.gep(args[0], [args[1]]))
    return context.get_dummy_value()


@type_callable(flat)
def _type_flat(_context: Any) -> Callable[..., Any]:
    return lambda record: FLAT if isinstance(record, LaneRecordType | types.Record) else None


@type_callable(numbers)
def _type_numbers(_context: Any) -> Callable[..., Any]:
    def typer(record: types.Type) -> types.Type | None:
        if isinstance(record, LaneRecordType):
            return LaneRowsType(0)
        return FLAT if isinstance(record, types.Record) else None

    return typer


@lower_builtin(flat, types.Any)
@lower_builtin(numbers, types.Any)
def _lower_flat(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    return builder.bitcast(args[0], _DOUBLE.as_pointer())


@type_callable(lanes_of)
def _type_lanes_of(_context: Any) -> Callable[..., Any]:
    return lambda _scratch: types.intp


@lower_builtin(lanes_of, types.Any)
def _lower_lanes_of(_context: Any, _builder: Any, sig: Any, _args: Any) -> Any:
    return ir.Constant(cgutils.intp_t, LANES if isinstance(sig.args[0], LaneRecordType) else 1)


@type_callable(aligned_lane_record)
@type_callable(lane_record)
def _type_lane_record(_context: Any) -> Callable[..., Any]:
    return lambda record: LaneRecordType(record) if isinstance(record, types.Record) else None


@lower_builtin(lane_record, types.Record)
def _lower_lane_record(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    return builder.bitcast(args[0], ir.IntType(8).as_pointer())


@lower_builtin(aligned_lane_record, types.Record)
def _lower_aligned(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    line = 8 * LANES
    place = builder.ptrtoint(args[0], cgutils.intp_t)
    place = builder.add(place, ir.Constant(cgutils.intp_t, line - 1))
    place = builder.and_(place, ir.Constant(cgutils.intp_t, -line))
    return builder.inttoptr(place, ir.IntType(8).as_pointer())


def _field_type(kind: LaneRecordType, name: str) -> types.Type:
    """Return the type of a field: a record of lanes, rows of lanes or one vector."""
    field = kind.record.typeof(name)
    if isinstance(field, types.Record):
        return LaneRecordType(field)
    *rows, _ = field.shape  # type: ignore[attr-defined]  # of an array
    if not rows:
        return LANES_TYPE
    return LaneRowsType(rows[1] if len(rows) > 1 else 0)


@infer_getattr
class _LaneRecordFields(AttributeTemplate):
    key = LaneRecordType

    def generic_resolve(self, kind: LaneRecordType, name: str) -> types.Type | None:  # type: ignore[override]
        if name not in kind.record.fields:
            return None
        return _field_type(kind, name)


def _field(builder: Any, kind: LaneRecordType, record: Any, name: str, pointer: ir.Type) -> Any:
    start = builder.gep(record, [ir.Constant(ir.IntType(64), kind.record.offset(name))])
    return builder.bitcast(start, pointer)


@lower_getattr_generic(LaneRecordType)
def _get_field(context: Any, builder: Any, kind: LaneRecordType, record: Any, name: str) -> Any:
    field = _field_type(kind, name)
    if field == LANES_TYPE:
        return builder.load(_field(builder, kind, record, name, _VECTOR.as_pointer()), align=8)
    return _field(builder, kind, record, name, context.get_value_type(field))


@lower_setattr_generic(LaneRecordType)
def _set_field(_context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    record, value = args
    place = _field(builder, sig.args[0], record, name, _VECTOR.as_pointer())
    builder.store(value, place, align=8)
