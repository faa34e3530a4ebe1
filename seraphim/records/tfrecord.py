"""TFRecord framing and `tf.train.Example` messages, without TensorFlow, which takes five seconds to import.

Knows both formats and none of our features: those are in `seraphim.records.schema`. The messages are declared here as
in TensorFlow's `example.proto` and `feature.proto`, in a descriptor pool of their own, since TensorFlow may be imported
into the same process. Examples whose features have fixed sizes have a `Layout`, with which NumPy writes and reads whole
columns, about ten times as fast as the message library.
"""

import mmap
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import google_crc32c
import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from seraphim.errors import RecordError
from seraphim.game import Array

# A record is framed as: length (8 bytes), checksum of these 8, payload, checksum of the payload; little endian.
LENGTH = struct.Struct("<Q")
CHECKSUM = struct.Struct("<I")
HEADER_BYTES = LENGTH.size + CHECKSUM.size
FRAME_BYTES = HEADER_BYTES + CHECKSUM.size
VARINT_BITS = 7  # of an integer in each byte of its varint; the eighth says whether more bytes follow

FeatureKind = Literal["bytes_list", "float_list", "int64_list", "empty"]


class DamageError(RecordError):
    """A file is damaged, or is not what its name says; it is skipped as a whole.

    Attributes:
        is_cut_off: whether its beginning is that of a whole file, as after a kill.
    """

    def __init__(self, text: str, is_cut_off: bool = False) -> None:
        """See above."""
        super().__init__(text)
        self.is_cut_off = is_cut_off


class Feature(NamedTuple):
    """One feature of an example."""

    kind: FeatureKind
    values: list[Any]  # bytes, float or int; none if empty


# ---------------------------------------------------------------- framing


def frame(payload: bytes) -> bytes:
    """Return `payload` framed as one TFRecord."""
    length = LENGTH.pack(len(payload))
    return b"".join((length, _checksum(length), payload, _checksum(payload)))


def frames(data: Any) -> Iterator[bytes]:
    """Yield the payload of each record of a TFRecord file's content (`bytes` or an `mmap`), in order.

    Raises:
        DamageError: a record is truncated or its checksum is wrong; those before it have been yielded.
    """
    for start, stop in frame_bounds(data, verify=True):
        payload = data[start:stop]
        if data[stop : stop + CHECKSUM.size] != _checksum(payload):
            raise DamageError(f"corrupt: the checksum of the record at byte {start - HEADER_BYTES:,} is wrong")
        yield payload


def frame_bounds(data: Any, verify: bool = False) -> Iterator[tuple[int, int]]:
    """Yield where the payload of each record starts and stops, by the lengths alone; see `frames`."""
    position, size = 0, len(data)
    while position < size:
        header = data[position : position + HEADER_BYTES]
        if len(header) < HEADER_BYTES:
            raise DamageError(f"truncated: the header at byte {position:,} is cut short", is_cut_off=True)
        if verify and header[LENGTH.size :] != _checksum(header[: LENGTH.size]):
            raise DamageError(f"corrupt: the checksum of the length at byte {position:,} is wrong")
        start = position + HEADER_BYTES
        stop = start + LENGTH.unpack_from(header)[0]
        if stop + CHECKSUM.size > size:
            raise DamageError(f"truncated: the record at byte {position:,} is cut short", is_cut_off=True)
        yield start, stop
        position = stop + CHECKSUM.size


def count_frames(path: Path) -> int:
    """Return the number of records of a file by their lengths alone, unverified; 0 if these do not add up."""
    if not path.is_file():
        return 0
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return sum(1 for _ in frame_bounds(content))
    except (DamageError, ValueError):  # a ValueError: the file is empty
        return 0


def _checksum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    # Masked as the format asks, since the checksum of data that holds checksums is weak.
    return CHECKSUM.pack(((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


# ---------------------------------------------------------------- examples


def to_example(features: Mapping[str, Feature]) -> bytes:
    """Return a serialized `tf.train.Example`, its features in the order given."""
    return bytes(_to_message(features).SerializeToString())


def _to_message(features: Mapping[str, Feature]) -> Any:
    example = _Example()
    for name, (kind, values) in features.items():
        entry = example.features.feature.add(key=name)
        if kind == "empty":
            entry.value.SetInParent()
        else:
            getattr(entry.value, kind).value.extend(values)
    return example


def parse_example(payload: bytes) -> dict[str, Feature]:
    """Return the features of a serialized `tf.train.Example`, in the order in which they are stored.

    Raises:
        DamageError: the payload is not an `Example`, or has no feature.
    """
    example = _Example()
    try:
        example.ParseFromString(payload)
    except DecodeError as error:
        raise DamageError("a record is not a tf.train.Example") from error
    features = {}
    for entry in example.features.feature:
        kind: FeatureKind = entry.value.WhichOneof("kind") or "empty"
        features[entry.key] = Feature(kind, [] if kind == "empty" else list(getattr(entry.value, kind).value))
    # Almost any bytes parse as a message of unknown fields.
    if not features or len(UnknownFieldSet(example)):
        raise DamageError("a record is not a tf.train.Example")
    return features


class Layout(NamedTuple):
    """Where the values are in the `L` bytes of an example whose features have fixed sizes."""

    row: np.dtype[Any]  # one field per feature that varies; itemsize L
    template: Array  # uint8 [L], one example
    constant: Array  # int64, the indices of the bytes that are the same in every example


def make_layout(
    constants: Mapping[str, tuple[FeatureKind, Any]], stored: Mapping[str, tuple[FeatureKind, np.dtype[Any]]]
) -> Layout:
    """Return the layout of examples with these features, in this order, as the message library makes them.

    Args:
        constants: kind and value of each feature that is the same in every example.
        stored: kind and type of the bytes of each feature that varies: a little-endian `<f4`, scalar or vector, for
            `float_list`; anything for the one value of a `bytes_list`; `uint8 [n]`, filled by `to_varint`, for the one
            value of an `int64_list`.
    """
    features = {name: Feature(kind, [value]) for name, (kind, value) in constants.items()}
    for name, (kind, dtype) in stored.items():
        if kind == "bytes_list":
            features[name] = Feature(kind, [bytes(dtype.itemsize)])
        elif kind == "float_list":
            features[name] = Feature(kind, [0.0] * (dtype.itemsize // 4))
        else:
            features[name] = Feature(kind, [(1 << VARINT_BITS * dtype.itemsize) - 1])  # the largest of this size
    message = _to_message(features)
    template = np.frombuffer(message.SerializeToString(), np.uint8)
    ends = {}
    position = len(template) - message.features.ByteSize()
    for entry in message.features.feature:
        # A tag, the entry's size and the entry, which ends with its value.
        position += 1 + varint_bytes(entry.ByteSize()) + entry.ByteSize()
        ends[entry.key] = position
    formats = [dtype for _, dtype in stored.values()]
    offsets = [ends[name] - dtype.itemsize for name, (_, dtype) in stored.items()]
    varies = np.zeros(len(template), np.bool_)
    for offset, dtype in zip(offsets, formats, strict=True):
        varies[offset : offset + dtype.itemsize] = True
    row = np.dtype({"names": list(stored), "formats": formats, "offsets": offsets, "itemsize": len(template)})
    return Layout(row, template, np.flatnonzero(~varies))


def varint_bytes(largest: int) -> int:
    """Return the number of bytes in which protobuf stores every integer from 0 to `largest`."""
    return max(1, -(-largest.bit_length() // VARINT_BITS))


def to_varint(values: Array, size: int) -> Array:
    """Return non-negative integers [N] as uint8 [N, size], padded with zeros, which every reader accepts."""
    groups = values[:, None] >> VARINT_BITS * np.arange(size) & 0x7F
    groups[:, :-1] |= 0x80  # more bytes follow
    return groups.astype(np.uint8)


def from_varint(stored: Array) -> tuple[Array, Array]:
    """Return the integers int64 [N] stored as uint8 [N, size], and whether each fills these bytes exactly, bool [N]."""
    more = stored & 0x80 != 0
    values = ((stored & 0x7F).astype(np.int64) << VARINT_BITS * np.arange(stored.shape[1])).sum(axis=1)
    return values, more[:, :-1].all(axis=1) & ~more[:, -1]


def _declare_example() -> Any:
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="seraphim/example.proto", package="seraphim", syntax="proto3")

    def message(name: str, **fields: tuple[int, int, str | int]) -> Any:
        declared = file.message_type.add(name=name)
        for field_name, (number, label, kind) in fields.items():
            added = declared.field.add(name=field_name, number=number, label=label)
            if isinstance(kind, str):
                added.type, added.type_name = field.TYPE_MESSAGE, f".seraphim.{kind}"
            else:
                added.type = kind
        return declared

    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED
    message("BytesList", value=(1, many, field.TYPE_BYTES))
    message("FloatList", value=(1, many, field.TYPE_FLOAT))
    message("Int64List", value=(1, many, field.TYPE_INT64))
    kinds = message(
        "Feature", bytes_list=(1, one, "BytesList"), float_list=(2, one, "FloatList"), int64_list=(3, one, "Int64List")
    )
    kinds.oneof_decl.add(name="kind")
    for kind in kinds.field:
        kind.oneof_index = 0
    # TensorFlow declares a map; a repeated pair is the same on the wire, and keeps the order.
    message("Entry", key=(1, one, field.TYPE_STRING), value=(2, one, "Feature"))
    message("Features", feature=(1, many, "Entry"))
    message("Example", features=(1, one, "Features"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("seraphim.Example"))


_Example = _declare_example()
