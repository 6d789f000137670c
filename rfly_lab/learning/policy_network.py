# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Network of an ONNX file from anywhere: checked before it is loaded, and run within limits.

ONNX can loop, make tensors of any size, and read files next to the model. A policy is a handful of
layers and does none of it.

Theory of operation. A load computes what depends on constants alone. So nothing large may: layers
multiply what depends on the input by constants. That bounds each operation by the memory and the
size of the file; a run at load that takes longer than LONGEST_RUN_S is ended between two of them.
"""

from __future__ import annotations

import functools
import math
import threading
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
MOST_PARTS = 20_000
"""Most fields of a file: a reader takes 150 bytes of memory for one of 2 bytes."""
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
_NUMBER_BYTES = 10
"""Most bytes of a number in a file."""
_PRODUCTS = frozenset({"MatMul", "Gemm"})
"""Operations that multiply matrices."""
_OTHER_VALUES = frozenset({"g", "graphs", "tensors", "sparse_tensor", "sparse_tensors"})
"""Values of an attribute that no allowed operation needs."""


class PolicyNetwork:
    """Network with one input (n, numbers) and one output (n, numbers), float32."""

    def __init__(self, content: bytes) -> None:
        """Load a file's content. Raise ConfigError for one that is refused or can't be run."""
        runtime = require("onnxruntime", "a policy")
        _bound_memory()

        # one thread, and no log
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
    kind = require("onnx", "a policy").ModelProto
    _check_parts(memoryview(content), kind.DESCRIPTOR)
    model = kind.FromString(content)
    graph = model.graph
    if model.functions:
        raise ConfigError("it has functions of its own, expected operations alone")
    if graph.sparse_initializer:
        raise ConfigError("it has sparse tensors, expected dense ones")
    if len(graph.node) > MOST_NODES:
        raise ConfigError(f"more than {MOST_NODES} operations")

    # sizes of constants by name, bytes; an operation's may be larger than what is there
    sizes: dict[str, int] = {tensor.name: tensor.ByteSize() for tensor in graph.initializer}
    for tensor in graph.initializer:
        _check_tensor(tensor)
    depends = {side.name for side in graph.input} - sizes.keys()
    for node in graph.node:
        _check_node(node)
        _check_work(node, depends, sizes)


def _check_parts(content: memoryview, kind: Any) -> None:
    """Raise ConfigError for a file of more than MOST_PARTS fields, before they take memory.

    Fields are walked through as protobuf writes them; what is damaged is left to the reader.
    """
    parts = 0
    waiting = [(content, kind)]
    while waiting:
        rest, kind = waiting.pop()
        while rest:
            parts += 1
            if parts > MOST_PARTS:
                raise ConfigError(f"more than {MOST_PARTS:,} parts, expected layers alone")

            # length of the field's value
            key, rest = _number(rest)
            size = {1: 8, 5: 4}.get(key & 7, 0)
            if key & 7 in (0, 2):
                value, rest = _number(rest)
                size = value if key & 7 == 2 else 0

            # messages inside of it
            field = kind.fields_by_number.get(key >> 3)
            if key & 7 == 2 and field is not None and field.message_type is not None:
                waiting.append((rest[:size], field.message_type))
            rest = rest[size:]


def _number(content: memoryview) -> tuple[int, memoryview]:
    """Return the number at the begin, 7 bits a byte, and what follows."""
    value = 0
    for place, byte in enumerate(content[:_NUMBER_BYTES]):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value, content[place + 1 :]
    return 0, content[:0]


def _check_node(node: Any) -> None:
    """Raise ConfigError for an operation that is none of OPERATIONS."""
    if node.domain not in ("", "ai.onnx"):
        raise ConfigError(f"operation of {node.domain!r}, expected ONNX's")
    for attribute in node.attribute:
        if any(field.name in _OTHER_VALUES for field, _ in attribute.ListFields()):
            raise ConfigError("an attribute is a graph or a list of tensors")
        _check_tensor(attribute.t)
    if node.op_type not in OPERATIONS:
        raise ConfigError(
            f"operation {node.op_type!r}, expected one of {', '.join(sorted(OPERATIONS))}"
        )


def _check_work(node: Any, depends: set[str], sizes: dict[str, int]) -> None:
    """Raise ConfigError for an operation that may work for long.

    `depends`: names of what depends on the network's input; `sizes`: of constants, bytes. The
    names of its outputs are added to one of them.
    """
    operation = node.op_type
    inputs = list(node.input)
    if len(inputs) > MOST_INPUTS:
        raise ConfigError(f"{operation} of {len(inputs)} inputs, expected at most {MOST_INPUTS}")
    given = [name for name in inputs if name]
    if not set(given) <= depends | sizes.keys():
        raise ConfigError(f"{operation} comes before its inputs, expected operations in order")
    if not depends.isdisjoint(given):
        if operation in _PRODUCTS and depends.issuperset(inputs[:2]):
            raise ConfigError(f"{operation} without a constant, expected one of its two inputs")
        depends.update(node.output)
        return

    work = math.prod(sizes[name] for name in given) if given else 0
    if work > MOST_FOLDED:
        raise ConfigError(f"{operation} of large constants, expected its result in their place")
    sizes |= dict.fromkeys(node.output, max(work, node.ByteSize()))


def _check_tensor(tensor: Any) -> None:
    """Raise ConfigError for a tensor whose numbers are in another file."""
    if tensor.external_data or tensor.data_location:
        raise ConfigError("a tensor's numbers are in another file, expected all in one")


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
