# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Network of an ONNX file from anywhere: checked before it is loaded, and run within limits.

ONNX can loop, make tensors of any size, and read files beside the model. A policy is a handful of
layers and does none of it.

Theory of operation. A load computes what depends on constants alone. So nothing large may: layers
multiply what depends on the input by constants. That bounds each operation by the memory and the
size of the file; a run at load that takes longer than LONGEST_RUN_S is ended between two of them.
"""

from __future__ import annotations

import enum
import functools
import math
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rfly_common.errors import ConfigError
from rfly_common.imports import require

MOST_NODES = 200
"""Most operations of a network."""
MOST_INPUTS = 50
"""Most inputs of an operation."""
MOST_FOLDED = 1 << 24
"""Most work of an operation on constants alone: product of the sizes of its inputs, bytes."""
LONGEST_RUN_S = 5.0
"""Longest time of a run by which a network is checked, s."""
MOST_MEMORY = 512 * 1024 * 1024
"""Most memory of all networks of a process, bytes."""
_NAMES = (
    "Abs Add Cast Celu Clip Concat Constant Cos Div Elu Erf Exp Flatten Gelu Gemm HardSigmoid "
    "HardSwish Identity LayerNormalization LeakyRelu Log MatMul Max Mean Min Mish Mul Neg Pow "
    "PRelu Reciprocal Relu Reshape Selu Sigmoid Sign Sin Slice Softmax Softplus Softsign Sqrt "
    "Squeeze Sub Sum Tanh ThresholdedRelu Transpose Unsqueeze"
)
OPERATIONS = frozenset(_NAMES.split())
"""Operations that a network may have: none repeats others, or takes a size from its input."""
_PRODUCTS = frozenset({"MatMul", "Gemm"})
"""Operations that multiply matrices."""


class _Model(enum.IntEnum):
    """Fields of an ONNX ModelProto."""

    GRAPH = 7
    FUNCTIONS = 25


class _Graph(enum.IntEnum):
    """Fields of a GraphProto."""

    NODE = 1
    INITIALIZER = 5
    INPUT = 11
    SPARSE_INITIALIZER = 15


class _Node(enum.IntEnum):
    """Fields of a NodeProto."""

    INPUT = 1
    OUTPUT = 2
    OPERATION = 4
    ATTRIBUTE = 5
    DOMAIN = 7


class _Attribute(enum.IntEnum):
    """Fields of an AttributeProto that hold messages."""

    TENSOR = 5
    GRAPH = 6
    TENSORS = 10
    GRAPHS = 11
    SPARSE_TENSOR = 22
    SPARSE_TENSORS = 23


class _Tensor(enum.IntEnum):
    """Fields of a TensorProto."""

    NAME = 8
    EXTERNAL_DATA = 13
    DATA_LOCATION = 14


_OTHER_ATTRIBUTES = frozenset(_Attribute) - {_Attribute.TENSOR}
"""Attributes that no allowed operation needs."""


class PolicyNetwork:
    """Network with one input (n, numbers) and one output (n, numbers), float32."""

    def __init__(self, content: bytes) -> None:
        """Load a file's content. Raise ConfigError for one that is refused or can't be run."""
        runtime = require("onnxruntime", "a policy")
        _bound_memory()
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.use_env_allocators", "1")
        try:
            _check(content)
            self._session: Any = runtime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - its errors have no class of their own in common
            raise ConfigError(f"no ONNX model that can be run: {_first_line(error)}") from None

    @property
    def metadata(self) -> dict[str, str]:
        """Texts in the metadata of the file."""
        return dict(self._session.get_modelmeta().custom_metadata_map)

    def check_sizes(self, seen: int, acted: int) -> None:
        """Raise ConfigError unless it makes rows of `acted` numbers from as many rows of `seen`."""
        inputs = self._session.get_inputs()
        outputs = self._session.get_outputs()
        if len(inputs) != 1 or len(outputs) != 1:
            raise ConfigError(
                f"{len(inputs)} inputs and {len(outputs)} outputs, expected one of each"
            )
        for what, side, numbers in (("input", inputs[0], seen), ("output", outputs[0], acted)):
            shape = side.shape
            is_right = side.type == "tensor(float)" and len(shape) == 2 and shape[1] == numbers
            if not is_right or isinstance(shape[0], int):
                raise ConfigError(
                    f"{what}: {side.type} {shape}, expected tensor(float) ['n', {numbers}]"
                )

        # the file's shapes are only its word
        for rows in (1, 3):
            shape = self._run_briefly(np.zeros((rows, seen), np.float32)).shape
            if shape != (rows, acted):
                raise ConfigError(f"output: {shape} for {rows} rows, expected {(rows, acted)}")

    def run(self, rows: NDArray[np.floating], options: Any = None) -> NDArray[np.float32]:
        """Return its output. Raise ConfigError where it can't be had, as for lack of memory.

        `options` are onnxruntime's own.
        """
        inputs = {self._session.get_inputs()[0].name: np.asarray(rows, np.float32)}
        try:
            return np.asarray(self._session.run(None, inputs, options)[0])
        except Exception as error:  # noqa: BLE001 - as above
            raise ConfigError(f"the network fails: {_first_line(error)}") from None

    def _run_briefly(self, rows: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return its output. Raise ConfigError also if it takes too long."""
        options = require("onnxruntime", "a policy").RunOptions()
        timer = threading.Timer(LONGEST_RUN_S, setattr, (options, "terminate", True))
        timer.daemon = True
        timer.start()
        try:
            return self.run(rows, options)
        except ConfigError as error:
            if options.terminate:
                raise ConfigError(
                    f"{len(rows)} rows take more than {LONGEST_RUN_S:g} s, expected less"
                ) from error
            raise
        finally:
            timer.cancel()


@functools.cache
def _bound_memory() -> None:
    """Give the networks of this process memory of at most MOST_MEMORY together."""
    runtime = require("onnxruntime", "a policy")
    memory = runtime.OrtMemoryInfo(
        "Cpu", runtime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, runtime.OrtMemType.DEFAULT
    )
    # chunks of the size that is asked for
    arena = runtime.OrtArenaCfg({"max_mem": MOST_MEMORY, "arena_extend_strategy": 1})
    runtime.create_and_register_allocator(memory, arena)


def _check(content: bytes) -> None:
    """Raise ConfigError for a model that does more than layers do."""
    parts: list[tuple[int, bytes]] = []
    for field, graph in _messages(content):
        if field == _Model.FUNCTIONS:
            raise ConfigError("it has functions of its own, expected operations alone")
        if field == _Model.GRAPH:
            parts += _messages(graph)

    # sizes of constants by name, bytes; an operation's may be larger than what is there
    sizes: dict[str, int] = {}
    for part, data in parts:
        if part == _Graph.SPARSE_INITIALIZER:
            raise ConfigError("it has sparse tensors, expected dense ones")
        if part == _Graph.INITIALIZER:
            sizes |= dict.fromkeys(_names(data, _Tensor.NAME), len(data))
            _check_tensor(data)
    inputs = {name for part, data in parts if part == _Graph.INPUT for name in _names(data, 1)}

    nodes = [data for part, data in parts if part == _Graph.NODE]
    if len(nodes) > MOST_NODES:
        raise ConfigError(f"more than {MOST_NODES} operations")
    depends = inputs - sizes.keys()
    for node in nodes:
        _check_node(node)
        _check_work(node, depends, sizes)


def _check_node(node: bytes) -> None:
    """Raise ConfigError for an operation that is none of OPERATIONS."""
    operation = ""
    for field, data in _messages(node):
        if field == _Node.OPERATION:
            operation = data.decode(errors="replace")
        elif field == _Node.DOMAIN and data not in (b"", b"ai.onnx"):
            raise ConfigError(f"operation of {data.decode(errors='replace')!r}, expected ONNX's")
        elif field == _Node.ATTRIBUTE:
            for kind, value in _messages(data):
                if kind in _OTHER_ATTRIBUTES:
                    raise ConfigError("an attribute is a graph or a list of tensors")
                if kind == _Attribute.TENSOR:
                    _check_tensor(value)
    if operation not in OPERATIONS:
        raise ConfigError(
            f"operation {operation!r}, expected one of {', '.join(sorted(OPERATIONS))}"
        )


def _check_work(node: bytes, depends: set[str], sizes: dict[str, int]) -> None:
    """Raise ConfigError for an operation that may work for long.

    `depends`: names of what depends on the network's input; `sizes`: of constants, bytes. The
    names of its outputs are added to one of them.
    """
    operation = _names(node, _Node.OPERATION)[-1]
    inputs = _names(node, _Node.INPUT)
    if len(inputs) > MOST_INPUTS:
        raise ConfigError(f"{operation} of {len(inputs)} inputs, expected at most {MOST_INPUTS}")
    outputs = _names(node, _Node.OUTPUT)
    given = [name for name in inputs if name]
    if not set(given) <= depends | sizes.keys():
        raise ConfigError(f"{operation} comes before its inputs, expected operations in order")
    if not depends.isdisjoint(given):
        if operation in _PRODUCTS and depends.issuperset(inputs[:2]):
            raise ConfigError(f"{operation} without a constant, expected one of its two inputs")
        depends.update(outputs)
        return

    work = math.prod(sizes[name] for name in given) if given else 0
    if work > MOST_FOLDED:
        raise ConfigError(f"{operation} of large constants, expected its result in their place")
    sizes |= dict.fromkeys(outputs, max(work, len(node)))


def _check_tensor(tensor: bytes) -> None:
    """Raise ConfigError for a tensor whose numbers are in another file."""
    for field in _fields(tensor):
        number = field.field_number
        if number == _Tensor.EXTERNAL_DATA or (number == _Tensor.DATA_LOCATION and field.data):
            raise ConfigError("a tensor's numbers are in another file, expected all in one")


def _names(message: bytes, number: int) -> list[str]:
    """Return the texts in a field of a message."""
    return [data.decode(errors="replace") for field, data in _messages(message) if field == number]


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of a message's fields that are messages or strings."""
    for field in _fields(data):
        if isinstance(field.data, bytes):
            yield field.field_number, field.data


def _fields(data: bytes) -> Any:
    """Return all fields of a message."""
    unknown_fields = require("google.protobuf.unknown_fields", "a policy")
    message = require("google.protobuf.empty_pb2", "a policy").Empty.FromString(data)
    return unknown_fields.UnknownFieldSet(message)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
