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
    aligned_record,
    any_lane,
    borrowed,
    first_vector,
    flat,
    lane_record,
    lanes_of,
    lookup,
    numbers,
    other_side,
    parts_of,
    plain,
    rough_inverse_root,
    rough_quotient,
    rough_root,
    rows_of,
    vectors,
    where,
)

_DOUBLE = ir.DoubleType()
_FLOAT = ir.FloatType()
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


class PartsRecordType(types.Type):
    """Type of the record of one vehicle, in which fields with numbers of parts are lanes."""

    def __init__(self, record: types.Record) -> None:
        self.record = record
        super().__init__(name=f"PartsRecord({record})")


class TableType(types.Type):
    """Type of an array's numbers without their owner."""

    def __init__(self, array: types.Array) -> None:
        self.array = array
        super().__init__(name=f"Table({array})")


@register_model(TableType)
class _TableModel(models.StructModel):
    def __init__(self, manager: Any, kind: TableType) -> None:
        members = [("data", types.CPointer(kind.array.dtype)), ("rows", types.intp)]
        super().__init__(manager, kind, members)


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
_primitive(PartsRecordType, ir.IntType(8).as_pointer())


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
    def typer(table: types.Type, index: types.Type, offset: types.Type) -> types.Type | None:
        if not isinstance(table, types.Array | TableType):
            return None
        if not isinstance(offset, types.Integer):
            return None
        return LANES_TYPE if index == LANES_TYPE else types.float64

    return typer


def _opened(context: Any, builder: Any, kind: types.Type, table: Any) -> tuple[Any, types.Type]:
    """Return the place of a table's or an array's first number, and its type."""
    if isinstance(kind, TableType):
        opened = cgutils.create_struct_proxy(kind)(context, builder, value=table)
        return opened.data, kind.array.dtype
    return context.make_array(kind)(context, builder, table).data, kind.dtype  # type: ignore[attr-defined]


@lower_builtin(lookup, types.Array, types.Float, types.Integer)
@lower_builtin(lookup, TableType, types.Float, types.Integer)
def _lower_lookup(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, dtype = _opened(context, builder, sig.args[0], args[0])
    offset = context.cast(builder, args[2], sig.args[2], types.intp)
    index = builder.add(builder.fptosi(args[1], cgutils.intp_t), offset)
    number = builder.load(builder.gep(data, [index]))
    return context.cast(builder, number, dtype, types.float64)


@type_callable(rows_of)
def _type_rows_of(_context: Any) -> Callable[..., Any]:
    return lambda table: types.intp if isinstance(table, types.Array | TableType) else None


@lower_builtin(rows_of, types.Array)
def _lower_rows_of_array(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    shape = context.make_array(sig.args[0])(context, builder, args[0]).shape
    return builder.extract_value(shape, 0)


@lower_builtin(rows_of, TableType)
def _lower_rows_of_table(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0]).rows


@type_callable(borrowed)
def _type_borrowed(_context: Any) -> Callable[..., Any]:
    def typer(group: types.Type) -> types.Type | None:
        if not isinstance(group, types.NamedTuple):
            return None
        kinds = [TableType(kind) if isinstance(kind, types.Array) else kind for kind in group.types]
        return types.NamedTuple(kinds, group.instance_class)

    return typer


@lower_builtin(borrowed, types.NamedTuple)
def _lower_borrowed(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    members = []
    for kind, member in zip(sig.args[0].types, cgutils.unpack_tuple(builder, args[0]), strict=True):
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, member)
            table = cgutils.create_struct_proxy(TableType(kind))(context, builder)
            table.data = array.data
            table.rows = builder.extract_value(array.shape, 0)
            member = table._getvalue()  # noqa: PLW2901
        members.append(member)
    return context.make_tuple(builder, sig.return_type, members)


@lower_builtin(lookup, types.Array, LanesType, types.Integer)
@lower_builtin(lookup, TableType, LanesType, types.Integer)
def _lower_lane_lookup(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    data, dtype = _opened(context, builder, sig.args[0], args[0])
    number = context.get_data_type(dtype)
    row = ir.VectorType(number, LANES)
    integers = ir.VectorType(cgutils.intp_t, LANES)
    pointers = ir.VectorType(number.as_pointer(), LANES)

    # addresses
    size = ir.Constant(cgutils.intp_t, context.get_abi_sizeof(number))
    first = builder.gep(data, [context.cast(builder, args[2], sig.args[2], types.intp)])
    start = _same_in_all(builder, builder.ptrtoint(first, cgutils.intp_t), integers)
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


# quotients and roots in single precision


@type_callable(rough_quotient)
def _type_rough_quotient(_context: Any) -> Callable[..., Any]:
    return lambda over, under: LANES_TYPE if LANES_TYPE in (over, under) else types.float64


@type_callable(rough_root)
@type_callable(rough_inverse_root)
def _type_rough_root(_context: Any) -> Callable[..., Any]:
    return lambda square: LANES_TYPE if square == LANES_TYPE else types.float64


def _shortened(context: Any, builder: Any, sig: Any, args: Any) -> list[Any]:
    """Return the arguments in single precision, all of the result's size."""
    size = ir.VectorType(_FLOAT, LANES) if sig.return_type == LANES_TYPE else _FLOAT
    numbers = zip(args, sig.args, strict=True)
    full = (context.cast(builder, arg, kind, sig.return_type) for arg, kind in numbers)
    return [builder.fptrunc(number, size) for number in full]


@lower_builtin(rough_quotient, types.Any, types.Any)
def _lower_rough_quotient(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    short = builder.fdiv(*_shortened(context, builder, sig, args))
    return builder.fpext(short, context.get_value_type(sig.return_type))


def _short_root(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    (square,) = _shortened(context, builder, sig, args)
    name = "llvm.sqrt.f32" if square.type == _FLOAT else f"llvm.sqrt.v{LANES}f32"
    kind = ir.FunctionType(square.type, [square.type])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [square])


@lower_builtin(rough_root, types.Any)
def _lower_rough_root(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    root = _short_root(context, builder, sig, args)
    return builder.fpext(root, context.get_value_type(sig.return_type))


@lower_builtin(rough_inverse_root, types.Any)
def _lower_rough_inverse_root(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    root = _short_root(context, builder, sig, args)
    ones = 1.0 if root.type == _FLOAT else [1.0] * LANES
    inverse = builder.fdiv(ir.Constant(root.type, ones), root)
    return builder.fpext(inverse, context.get_value_type(sig.return_type))


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
        if isinstance(record, LaneRecordType | PartsRecordType):
            return LaneRowsType(0)
        return FLAT if isinstance(record, types.Record) else None

    return typer


@lower_builtin(flat, types.Any)
@lower_builtin(numbers, types.Any)
def _lower_flat(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    return builder.bitcast(args[0], _DOUBLE.as_pointer())


@type_callable(vectors)
@type_callable(first_vector)
def _type_count(_context: Any) -> Callable[..., Any]:
    return lambda _like, count: count


@lower_builtin(vectors, types.Any, types.Integer)
def _lower_vectors(context: Any, _builder: Any, sig: Any, args: Any) -> Any:
    if isinstance(sig.args[0], PartsRecordType):
        return context.get_constant(sig.return_type, 1)
    return args[1]


@lower_builtin(first_vector, types.Any, types.Integer)
def _lower_first_vector(_context: Any, builder: Any, sig: Any, args: Any) -> Any:
    if isinstance(sig.args[0], PartsRecordType):
        return builder.udiv(args[1], ir.Constant(args[1].type, LANES))
    return args[1]


@type_callable(parts_of)
def _type_parts_of(_context: Any) -> Callable[..., Any]:
    def typer(like: types.Type, record: types.Type) -> types.Type | None:
        if isinstance(record, types.Record) and not isinstance(like, LaneRecordType):
            return PartsRecordType(record)
        return record

    return typer


@type_callable(plain)
def _type_plain(_context: Any) -> Callable[..., Any]:
    return lambda record: record.record if isinstance(record, PartsRecordType) else record


@lower_builtin(plain, types.Any)
@lower_builtin(parts_of, types.Any, types.Any)
def _lower_view(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.bitcast(args[-1], context.get_value_type(sig.return_type))


@type_callable(other_side)
def _type_other_side(_context: Any) -> Callable[..., Any]:
    return lambda _like, rows, _i: LANES_TYPE if isinstance(rows, LaneRowsType) else None


@lower_builtin(other_side, types.Any, LaneRowsType, types.Integer)
def _lower_other_side(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    index = context.cast(builder, args[2], sig.args[2], types.intp)
    if isinstance(sig.args[0], LaneRecordType):
        index = builder.xor(index, ir.Constant(index.type, 1))
        return builder.load(_vector_at(builder, args[1], index), align=8)
    row = builder.load(_vector_at(builder, args[1], index), align=8)
    pattern = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [lane ^ 1 for lane in range(LANES)])
    return builder.shuffle_vector(row, ir.Constant(_VECTOR, ir.Undefined), pattern)


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


@type_callable(aligned_record)
def _type_aligned_record(_context: Any) -> Callable[..., Any]:
    return lambda record: record if isinstance(record, types.Record) else None


@lower_builtin(aligned_lane_record, types.Record)
@lower_builtin(aligned_record, types.Record)
def _lower_aligned(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    line = 8 * LANES
    place = builder.ptrtoint(args[0], cgutils.intp_t)
    place = builder.add(place, ir.Constant(cgutils.intp_t, line - 1))
    place = builder.and_(place, ir.Constant(cgutils.intp_t, -line))
    return builder.inttoptr(place, context.get_value_type(sig.return_type))


def _field_type(kind: LaneRecordType | PartsRecordType, name: str) -> types.Type:
    """Return the type of a field: a record, rows of lanes, one vector, or plain numbers."""
    field = kind.record.typeof(name)
    if isinstance(kind, PartsRecordType):
        if isinstance(field, types.Record):
            return PartsRecordType(field)
        if not isinstance(field, types.NestedArray):
            return field
        *_, size = field.shape
        return FLAT if size % LANES else LaneRowsType(size // LANES)
    if isinstance(field, types.Record):
        return LaneRecordType(field)
    *rows, _ = field.shape  # type: ignore[attr-defined]  # of an array
    if not rows:
        return LANES_TYPE
    return LaneRowsType(rows[1] if len(rows) > 1 else 0)


class _Fields(AttributeTemplate):
    def generic_resolve(self, kind: Any, name: str) -> types.Type | None:  # type: ignore[override]
        return _field_type(kind, name) if name in kind.record.fields else None


@infer_getattr
class _LaneRecordFields(_Fields):
    key = LaneRecordType


@infer_getattr
class _PartsRecordFields(_Fields):
    key = PartsRecordType


def _is_number(field: types.Type) -> bool:
    """Return whether a field is loaded and stored, not only its place known."""
    return field == LANES_TYPE or isinstance(field, types.Number)


def _field(context: Any, builder: Any, kind: Any, record: Any, name: str) -> Any:
    """Return the field's place."""
    field = _field_type(kind, name)
    start = builder.gep(record, [ir.Constant(ir.IntType(64), kind.record.offset(name))])
    pointer = context.get_value_type(field)
    return builder.bitcast(start, pointer.as_pointer() if _is_number(field) else pointer)


@lower_getattr_generic(LaneRecordType)
@lower_getattr_generic(PartsRecordType)
def _get_field(context: Any, builder: Any, kind: Any, record: Any, name: str) -> Any:
    place = _field(context, builder, kind, record, name)
    return builder.load(place, align=8) if _is_number(_field_type(kind, name)) else place


@lower_setattr_generic(LaneRecordType)
@lower_setattr_generic(PartsRecordType)
def _set_field(context: Any, builder: Any, sig: Any, args: Any, name: str) -> None:
    record, value = args
    place = _field(context, builder, sig.args[0], record, name)
    builder.store(value, place, align=8)
