# Copyright 2026 rfly_suite maintainers
# SPDX-License-Identifier: Apache-2.0

"""Networks from anywhere: files that loop, fill the memory or read other files are refused.

The models are written byte by byte, as the protocol buffers of ONNX 1.16 (onnx.proto) say.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rfly_common.errors import ConfigError
from rfly_lab import Policy, shipped_policy
from rfly_lab.learning import policy_network
from rfly_lab.learning.policy_network import MOST_NODES, PolicyNetwork

pytestmark = pytest.mark.needs("onnx", "onnxruntime")


def varint(number: int) -> bytes:
    """A whole number in groups of seven bits, the lowest first."""
    groups = [number >> shift & 0x7F for shift in range(0, max(number.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def field(number: int, content: bytes | str | int) -> bytes:
    """A field: a number, or a text or message with its length."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


def node(operation: str, inputs: str, output: str, *attributes: bytes, domain: str = "") -> bytes:
    """A node of a graph; `inputs` with spaces between."""
    names = b"".join(field(1, name) for name in inputs.split())
    parts = b"".join(field(5, attribute) for attribute in attributes)
    domains = field(7, domain) if domain else b""
    return field(1, names + field(2, output) + field(4, operation) + parts + domains)


def head(name: str, numbers: np.ndarray) -> bytes:
    """Name, type and shape of a tensor."""
    kind = {np.dtype(np.float32): 1, np.dtype(np.int64): 7}[numbers.dtype]
    return b"".join(field(1, n) for n in numbers.shape) + field(2, kind) + field(8, name)


def tensor(name: str, numbers: np.ndarray) -> bytes:
    """A tensor with its numbers."""
    return head(name, numbers) + field(9, numbers.tobytes())


def side(name: str, numbers: int, rows: bytes | None = None) -> bytes:
    """Name, type and shape of an input or output, (n, numbers) unless `rows` are others."""
    first = field(2, "n") if rows is None else rows
    shape = field(1, first) + field(1, field(1, numbers))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))


def model(
    *parts: bytes, tensors: tuple[bytes, ...] = (), seen: int = 3, more: bytes = b""
) -> bytes:
    """A model with the input x, (n, seen), and the output y, (n, 2), of nodes and tensors."""
    inside = b"".join(parts) + field(2, "g") + b"".join(field(5, each) for each in tensors)
    graph = inside + field(11, side("x", seen)) + field(12, side("y", 2))
    return field(1, 9) + field(7, graph) + field(8, field(2, 18)) + more


WEIGHTS = np.arange(6.0, dtype=np.float32).reshape(3, 2)
LAYER = node("MatMul", "x w", "y")
INTO_Z = node("MatMul", "x w", "z")
W = tensor("w", WEIGHTS)


def test_a_layer() -> None:
    network = PolicyNetwork(model(LAYER, tensors=(W,)))
    network.check_sizes(3, 2)
    rows = np.array(((1.0, 0.0, 0.0), (0.0, 2.0, 1.0)), np.float32)
    assert network.run(rows) == pytest.approx(rows @ WEIGHTS)


def test_sizes_that_are_not_those_of_the_facts() -> None:
    network = PolicyNetwork(model(LAYER, tensors=(W,)))
    with pytest.raises(ConfigError, match=r"input: .*3\], expected tensor\(float\) \['n', 31\]"):
        network.check_sizes(31, 2)
    with pytest.raises(ConfigError, match=r"output: .*2\], expected tensor\(float\) \['n', 4\]"):
        network.check_sizes(3, 4)


@pytest.mark.parametrize(
    ("last", "more", "message"),
    [
        (
            node("Concat", "z z", "y", field(1, "axis") + field(3, 0) + field(20, 2)),
            (),
            r"\(2, 2\) f",
        ),
        (
            node("Slice", "z i i", "y"),
            (tensor("i", np.zeros(1, np.int64)),),
            r"output: \(0, 2\) for 1 rows, expected \(1, 2\)",
        ),
    ],
)
def test_outputs_that_are_not_as_the_file_says(
    last: bytes, more: tuple[bytes, ...], message: str
) -> None:
    network = PolicyNetwork(model(INTO_Z, last, tensors=(W, *more)))
    with pytest.raises(ConfigError, match=message):
        network.check_sizes(3, 2)


IN_A_FILE = head("w", WEIGHTS) + field(13, field(1, "location") + field(2, "w.bin")) + field(14, 1)
LOCATED = head("w", WEIGHTS) + field(14, 1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model(LAYER, tensors=(IN_A_FILE,)), "numbers are in another file"),
        (model(LAYER, tensors=(LOCATED,)), "numbers are in another file"),
        (
            model(
                node("Constant", "", "w", field(1, "value") + field(5, IN_A_FILE) + field(20, 4)),
                LAYER,
            ),
            "numbers are in another file",
        ),
        (model(node("ConstantOfShape", "w", "y"), tensors=(W,)), "operation 'ConstantOfShape'"),
        (model(node("Loop", "w w w", "y"), tensors=(W,)), "operation 'Loop', expected one of Abs"),
        (model(node("Add", "x x", "y", field(1, "body") + field(6, b""))), "is a graph"),
        (model(node("Add", "x x", "y", field(1, "body") + field(11, b""))), "is a graph"),
        (model(node("Add", "x x", "y", field(1, "value") + field(22, b""))), "is a graph"),
        (model(node("Add", "x x", "y", domain="com.microsoft")), "of 'com.microsoft'"),
        (model(LAYER, field(15, b""), tensors=(W,)), "sparse tensors"),
        (model(LAYER, tensors=(W,), more=field(25, b"")), "functions of its own"),
        # a field that comes twice is merged: the second part of the graph counts, too
        (model(LAYER, tensors=(W,), more=field(7, node("If", "w", "q"))), "operation 'If'"),
        (model(*[node("Tanh", "x", f"t{i}") for i in range(MOST_NODES + 1)]), "more than 200 op"),
        # empty operations, of which a reader makes 450 MB
        (model(LAYER, b"\x0a\x00" * 3_000_000, tensors=(W,)), "more than 20,000 parts"),
        (b"\xff" * 1000, "no ONNX model that can be run"),
        (b"", "no ONNX model that can be run"),
        (model(LAYER, tensors=(W,))[:-20], "no ONNX model that can be run"),
    ],
)
def test_models_that_do_more_than_layers_do(content: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PolicyNetwork(content)


def test_numbers_of_another_file_are_never_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """onnxruntime itself takes them from the folder in which it runs."""
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "policy.onnx").write_bytes(model(LAYER, tensors=(IN_A_FILE,)))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"policy\.onnx: a tensor's numbers are in another file"):
        Policy("policy.onnx")


ONES = tensor("one", np.ones((3, 1), np.float32))


def column(rows: int) -> tuple[bytes, ...]:
    """Nodes and a tensor that make the output "column", (rows, 1), of an input of one row."""
    product = node("MatMul", "x one", "sum")
    return (
        product,
        node("Add", "sum many", "column"),
        tensor("many", np.ones((rows, 1), np.float32)),
    )


def test_a_network_does_not_fill_the_memory() -> None:
    """A column and a row of 20,000 numbers make a table of 1.6 GB."""
    row = tensor("b", np.ones((1, 20_000), np.float32))
    narrow = tensor("a", np.ones((20_000, 2), np.float32))
    *nodes, many = column(20_000)
    table = node("MatMul", "column b", "c")
    last = node("MatMul", "c a", "y")
    network = PolicyNetwork(model(*nodes, table, last, tensors=(ONES, many, row, narrow)))
    with pytest.raises(ConfigError, match=r"the network fails: .*[Mm]emory"):
        network.run(np.zeros((1, 3), np.float32))


LARGE = tensor("w", np.ones((300, 300), np.float32))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model(node("MatMul", "w w", "v"), LAYER, tensors=(LARGE,)), "MatMul of large constants"),
        (
            model(node("Transpose", "w", "v"), node("Add", "v w", "u"), LAYER, tensors=(LARGE,)),
            "Add of large constants",
        ),
        # an input with a value of its own is a constant
        (
            model(node("Mul", "w w", "v"), field(11, side("w", 2)), LAYER, tensors=(LARGE,)),
            "Mul of large constants",
        ),
        (model(node("MatMul", "x x", "y")), "MatMul without a constant"),
        (model(INTO_Z, node("Gemm", "x z", "y"), tensors=(W,)), "Gemm without a constant"),
        (model(node("Tanh", "z", "y"), INTO_Z, tensors=(W,)), "Tanh comes before its inputs"),
        (model(node("Sum", "x " * 51, "y")), "Sum of 51 inputs, expected at most 50"),
    ],
)
def test_models_that_could_work_for_long(content: bytes, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        PolicyNetwork(content)


def test_small_constants_may_be_worked_out() -> None:
    """Exporters leave things such as a variance and its epsilon."""
    variance = tensor("v", np.full((1, 3), 3.0, np.float32))
    one = tensor("e", np.ones(1, np.float32))
    nodes = (
        node("Add", "v e", "s"),
        node("Sqrt", "s", "d"),
        node("Div", "x d", "n"),
        node("MatMul", "n w", "y"),
    )
    network = PolicyNetwork(model(*nodes, tensors=(variance, one, W)))
    assert network.run(np.ones((1, 3))) == pytest.approx(0.5 * WEIGHTS.sum(axis=0, keepdims=True))


def test_a_network_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """It multiplies 20,000 rows by a matrix of 700 x 700 some 100 times: a minute of a core."""
    monkeypatch.setattr(policy_network, "LONGEST_RUN_S", 0.2)
    *nodes, many = column(20_000)
    size = 700
    wide = tensor("wide", np.ones((1, size), np.float32))
    square = tensor("square", np.full((size, size), 1.0 / size, np.float32))
    nodes.append(node("MatMul", "column wide", "p0"))
    nodes += [node("MatMul", f"p{i} square", f"p{i + 1}") for i in range(100)]
    nodes.append(node("MatMul", "p100 narrow", "q"))
    narrow = tensor("narrow", np.ones((size, 2), np.float32))
    first = tensor("i", np.array([0]))
    end = tensor("k", np.array([1]))
    nodes += [node("Slice", "q i k", "first"), INTO_Z, node("Add", "z first", "y")]
    tensors = (ONES, many, wide, square, narrow, first, end, W)
    network = PolicyNetwork(model(*nodes, tensors=tensors))

    with pytest.raises(ConfigError, match=r"1 rows take more than 0\.2 s, expected less"):
        network.check_sizes(3, 2)


def test_the_shipped_policies_are_small() -> None:
    for name in ("hover", "waypoints", "hop", "hover_by_sensors"):
        file = shipped_policy(name)
        Policy(file)
        assert file.stat().st_size < 40_000
