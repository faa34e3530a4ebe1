"""Looks at what a model of unknown origin holds, before any of it is run; imports and runs none of it.

A SavedModel is a program for TensorFlow, which can read and write files; a Keras archive names classes that are made
when it is loaded; `settings.json` names a module that is imported. Each of them may hold what the models of Seraphim
are made of, and nothing else. A network with other operations or layers needs them added to the lists here.
"""

import ast
import json
import sys
import zipfile
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, NamedTuple

from seraphim.errors import GameError, ModelError

OPERATIONS = frozenset(
    # Arithmetic on what comes in and on the weights, in memory.
    "Abs Add AddN AddV2 All Any ArgMax ArgMin AssignVariableOp AvgPool BatchMatMulV2 BatchMatMulV3 BiasAdd BroadcastTo "
    "Cast ClipByValue ConcatV2 Const Conv2D DepthwiseConv2dNative DisableCopyOnRead Div Einsum Elu Equal Erf Exp "
    "ExpandDims Fill FusedBatchNorm FusedBatchNormV3 GatherV2 Greater GreaterEqual Identity IdentityN LeakyRelu Less "
    "LessEqual Log LogSoftmax LogicalAnd LogicalNot LogicalOr MatMul Max MaxPool Maximum Mean Min Minimum Mul Neg NoOp "
    "NotEqual OneHot Pack Pad PadV2 PartitionedCall Placeholder Pow Prod Range Rank ReadVariableOp RealDiv Reciprocal "
    "Relu Relu6 Reshape ReverseV2 Rsqrt Select SelectV2 Selu Shape Sigmoid Sign Size Slice Softmax Softplus Split "
    "SplitV Sqrt Square SquaredDifference Squeeze StatefulPartitionedCall StaticRegexFullMatch StopGradient "
    "StridedSlice StringJoin Sub Sum Tanh Tile Transpose Unpack VarHandleOp ZerosLike".split()
)
"""What the graph of a SavedModel may compute."""

_SAVING = frozenset(["RestoreV2", "SaveV2", "MergeV2Checkpoints", "ShardedFilename"])
# They reach files. TensorFlow adds them to every SavedModel, in functions that nothing calls when it is loaded.

_KERAS_MODULES = frozenset(
    f"keras.{module}" for module in "initializers losses optimizers optimizers.schedules regularizers".split()
)
_KERAS_OBJECTS = frozenset(
    ["keras.DTypePolicy", "keras.src.models.functional.Functional", "seraphim.networks.FusedBatchNormalization"]
    + [
        f"keras.layers.{layer}"
        for layer in "Activation Add AveragePooling2D BatchNormalization Concatenate Conv2D Dense DepthwiseConv2D "
        "Dropout ELU Flatten GlobalAveragePooling2D GlobalMaxPooling2D InputLayer LayerNormalization LeakyReLU "
        "MaxPooling2D Multiply PReLU ReLU Rescaling Reshape SeparableConv2D Softmax ZeroPadding2D".split()
    ]
)
_TENSOR = "__keras_tensor__"  # how an archive writes what goes from a layer to the next

# Of the protocol buffers of TensorFlow: the numbers of the fields that lead to the operations.
_META_GRAPH = 2  # of a SavedModel
_GRAPH, _OBJECTS = 2, 7  # of a MetaGraphDef
_NODE, _LIBRARY = 1, 2  # of a GraphDef
_FUNCTION = 1  # of a FunctionDefLibrary
_SIGNATURE, _FUNCTION_NODE = 1, 3  # of a FunctionDef
_SIGNATURE_NAME = 1  # of an OpDef
_OPERATION = 2  # of a NodeDef


def check_saved_model(folder: Path) -> None:
    """Check that a SavedModel computes and does nothing else.

    Raises:
        ModelError: it holds other operations, or is damaged.
    """
    try:
        foreign = _foreign_operations((folder / "saved_model.pb").read_bytes())
    except (OSError, ValueError, IndexError) as error:
        raise ModelError(f"the SavedModel in {folder} is damaged: promote another snapshot, or retrain") from error
    if foreign:
        raise ModelError(
            f"the SavedModel in {folder} holds {', '.join(sorted(foreign))}, which no network of Seraphim does: "
            "it is not run, see docs/security.md"
        )


def check_archive(file: Path) -> None:
    """Check that a Keras archive is made of layers that Seraphim knows.

    Raises:
        ModelError: it holds other objects, or is damaged.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            objects = set(_objects(json.loads(archive.read("config.json"))))
    except (OSError, ValueError, KeyError, RecursionError, zipfile.BadZipFile) as error:
        raise ModelError(
            f"{file} is damaged ({str(error) or type(error).__name__}): point the champion at another snapshot, or "
            "start a new model with --init"
        ) from error
    foreign = {name for module, name in objects if not _is_known(module, name)}
    if foreign:
        raise ModelError(
            f"{file} holds {', '.join(sorted(foreign))}, which no network of Seraphim does: it is not loaded, "
            "see docs/security.md"
        )


def check_game_module(name: str) -> None:
    """Check that a module that is named as a game mentions GAME, before it is imported.

    Raises:
        GameError: it does not.
    """
    spec = _find(name)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return  # there is none, or nothing that can be read: importing it will tell
    try:
        tree = ast.parse(Path(spec.origin).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    if not {"GAME", "*", "__getattr__"} & set(_names(tree)):
        raise GameError(f"module {name!r} offers no GAME: name a package or module that does, such as tictactoe")


# ---------------------------------------------------------------- SavedModels


class _Function(NamedTuple):
    name: bytes
    operations: set[str]
    content: bytes


def _foreign_operations(content: bytes) -> set[str]:
    (meta_graph,) = (value for number, value in _fields(content) if number == _META_GRAPH)
    parts = list(_fields(meta_graph))
    others = [value for number, value in parts if number == _OBJECTS]
    if not any(others):
        raise ValueError  # TensorFlow 1 wrote it, of which more would be run
    operations: set[str] = set()
    functions: list[_Function] = []
    for number, graph in parts:
        if number == _GRAPH:
            for kind, value in _fields(graph):
                if kind == _NODE:
                    operations |= _operations_of(value)
                elif kind == _LIBRARY:
                    functions += [_to_function(each) for which, each in _fields(value) if which == _FUNCTION]
                    others += [each for which, each in _fields(value) if which != _FUNCTION]
    for function in functions:
        reaches_files = bool(function.operations & _SAVING)
        is_for_saving = reaches_files and _is_uncalled(function, functions, others)
        operations |= function.operations - (_SAVING if is_for_saving else set())
    return operations - OPERATIONS


def _is_uncalled(function: _Function, functions: list[_Function], others: list[bytes]) -> bool:
    # Whether nothing that is loaded can call a function, because its name is nowhere else. (It is in the graph of
    # TensorFlow 1 too, which is not run.)
    mentions = [*others, *(each.content for each in functions if each is not function)]
    return bool(function.name) and not any(function.name in content for content in mentions)


def _to_function(content: bytes) -> _Function:
    names, operations = [], set()
    for number, value in _fields(content):
        if number == _SIGNATURE:
            names += [each for which, each in _fields(value) if which == _SIGNATURE_NAME]
        elif number == _FUNCTION_NODE:
            operations |= _operations_of(value)
    return _Function(names[-1] if names else b"", operations, content)


def _operations_of(node: bytes) -> set[str]:
    return {value.decode(errors="replace") for number, value in _fields(node) if number == _OPERATION}


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    # The fields of a protocol buffer that hold bytes, by their numbers; raises an IndexError or ValueError if it is
    # none. Without a library: reading this much of the format takes less code than declaring what is not read.
    position, size = 0, len(message)
    while position < size:
        tag, position = _varint(message, position)
        kind = tag & 7
        if kind == 0:
            _, position = _varint(message, position)
        elif kind == 1:
            position += 8
        elif kind == 5:
            position += 4
        elif kind == 2:
            length, position = _varint(message, position)
            if position + length > size:
                raise ValueError
            yield tag >> 3, message[position : position + length]
            position += length
        else:
            raise ValueError
    if position > size:
        raise ValueError


def _varint(message: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[position]
        position += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, position
        if shift > 63:
            raise ValueError


# ---------------------------------------------------------------- Keras archives


def _objects(config: Any) -> Iterator[tuple[str | None, str]]:
    # The module and the class of everything that a configuration would make.
    if isinstance(config, dict):
        if "class_name" in config:
            yield config.get("module"), str(config["class_name"])
        for value in config.values():
            yield from _objects(value)
    elif isinstance(config, list):
        for value in config:
            yield from _objects(value)


def _is_known(module: str | None, name: str) -> bool:
    return name == _TENSOR or module in _KERAS_MODULES or f"{module}.{name}" in _KERAS_OBJECTS


# ---------------------------------------------------------------- modules of games


def _find(name: str) -> ModuleSpec | None:
    # As the import system would, but without importing the packages above it.
    spec: ModuleSpec | None = None
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        path = spec.submodule_search_locations if spec else None
        if length > 1 and path is None:
            return None
        found = (finder.find_spec(".".join(parts[:length]), path) for finder in sys.meta_path)
        spec = next((each for each in found if each), None)
    return spec


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).split(".")[0]
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
