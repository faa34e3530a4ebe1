"""TFRecord framing and `tf.train.Example` messages, without TensorFlow, whose import takes five seconds.

Knows both formats and none of our features: those are `seraphim.records.examples`. The messages are declared here,
field by field as in TensorFlow's `example.proto` and `feature.proto`, in a descriptor pool of their own:
TensorFlow may be imported in the same process. Examples whose features have fixed sizes have a `Layout`, by which
NumPy fills and reads whole columns of them, some ten times as fast as the message library.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
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
VARINT_BITS = 7  # of an integer, in each byte of its varint; the eighth says whether more follow

Kind = Literal["bytes_list", "float_list", "int64_list", "empty"]


class DamageError(RecordError):
    """A file is damaged, or is not what its name says: it is skipped whole."""


class Feature(NamedTuple):
    """One feature of an example."""

    kind: Kind
    values: list[Any]  # bytes, float or int; none if empty


def frame(payload: bytes) -> bytes:
    """Return `payload` framed as one TFRecord."""
    length = LENGTH.pack(len(payload))
    return b"".join((length, _checksum(length), payload, _checksum(payload)))


def frames(data: Any) -> Iterator[bytes]:
    """Yield the payload of each record of a TFRecord file's content (`bytes` or an `mmap`), in order.

    Raises:
        DamageError: a record is cut short or its checksum is wrong; those before it have been yielded.
    """
    start, size = 0, len(data)
    while start < size:
        header = data[start : start + HEADER_BYTES]
        if len(header) < HEADER_BYTES:
            raise DamageError(f"truncated: the header at byte {start:,} is cut short")
        if header[LENGTH.size :] != _checksum(header[: LENGTH.size]):
            raise DamageError(f"corrupt: the checksum of the length at byte {start:,} is wrong")
        payload_start = start + HEADER_BYTES
        payload_end = payload_start + LENGTH.unpack_from(header)[0]
        end = payload_end + CHECKSUM.size
        if end > size:
            raise DamageError(f"truncated: the record at byte {start:,} is cut short")
        payload = data[payload_start:payload_end]
        if data[payload_end:end] != _checksum(payload):
            raise DamageError(f"corrupt: the checksum of the record at byte {start:,} is wrong")
        yield payload
        start = end


def count_frames(path: Path) -> int:
    """Return the number of records of a file by their lengths alone, unverified; 0 if these do not add up."""
    count, size = 0, path.stat().st_size
    with path.open("rb") as file:
        position = 0
        while position < size:
            header = file.read(LENGTH.size)
            if len(header) < LENGTH.size:
                return 0
            position += LENGTH.unpack(header)[0] + FRAME_BYTES
            if position > size:
                return 0
            file.seek(position)
            count += 1
    return count


def to_example(features: Mapping[str, Feature]) -> bytes:
    """Return a serialized `tf.train.Example`, its features in the order given."""
    return example_message(features).SerializeToString()


def parse_example(payload: bytes) -> dict[str, Feature]:
    """Return the features of a serialized `tf.train.Example`, in the order in which they are stored.

    Raises:
        DamageError: the payload is no `Example`, or has no feature.
    """
    example = _Example()
    try:
        example.ParseFromString(payload)
    except DecodeError as error:
        raise DamageError("a record is no tf.train.Example") from error
    features = {}
    for entry in example.features.feature:
        kind: Kind = entry.value.WhichOneof("kind") or "empty"
        features[entry.key] = Feature(kind, [] if kind == "empty" else list(getattr(entry.value, kind).value))
    # Almost any bytes parse as a message of unknown fields.
    if not features or len(UnknownFieldSet(example)):
        raise DamageError("a record is no tf.train.Example")
    return features


def example_message(features: Mapping[str, Feature]) -> Any:
    """Return a `tf.train.Example` as a protobuf message, whose entries stand in the order given."""
    example = _Example()
    for name, (kind, values) in features.items():
        entry = example.features.feature.add(key=name)
        if kind == "empty":
            entry.value.SetInParent()
        else:
            getattr(entry.value, kind).value.extend(values)
    return example


class Layout(NamedTuple):
    """Where the values stand in the `L` bytes of an example whose features have fixed sizes."""

    row: np.dtype[Any]  # one field per feature that varies; itemsize L
    template: Array  # uint8 [L], one example
    constant: Array  # int64, the indices of the bytes that are the same in every example


def make_layout(
    constants: Sequence[tuple[str, Kind, Any]], stored: Sequence[tuple[str, Kind, np.dtype[Any]]]
) -> Layout:
    """Return the layout of examples with these features, in this order, as the message library makes them.

    Args:
        constants: name, kind and value of each feature that is the same in every example.
        stored: name, kind and type of the bytes of each feature that varies: a little-endian `<f4`, alone or a vector,
            for `float_list`; anything for the one value of a `bytes_list`; `uint8 [n]`, filled by `to_varint`, for the
            one value of an `int64_list`.
    """
    features = {name: Feature(kind, [value]) for name, kind, value in constants}
    for name, kind, dtype in stored:
        if kind == "bytes_list":
            features[name] = Feature(kind, [bytes(dtype.itemsize)])
        elif kind == "float_list":
            features[name] = Feature(kind, [0.0] * (dtype.itemsize // 4))
        else:
            features[name] = Feature(kind, [(1 << VARINT_BITS * dtype.itemsize) - 1])  # the largest of this size
    message = example_message(features)
    template = np.frombuffer(message.SerializeToString(), np.uint8)
    ends = {}
    position = len(template) - message.features.ByteSize()
    for entry in message.features.feature:
        # A tag, the entry's size and the entry, which ends with its value.
        position += 1 + varint_bytes(entry.ByteSize()) + entry.ByteSize()
        ends[entry.key] = position
    offsets = [ends[name] - dtype.itemsize for name, _, dtype in stored]
    formats = [dtype for _, _, dtype in stored]
    varies = np.zeros(len(template), np.bool_)
    for offset, dtype in zip(offsets, formats, strict=True):
        varies[offset : offset + dtype.itemsize] = True
    names = [name for name, _, _ in stored]
    row = np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": len(template)})
    return Layout(row, template, np.flatnonzero(~varies))


def varint_bytes(largest: int) -> int:
    """Return the number of bytes that hold every integer from 0 to `largest` as protobuf stores it."""
    return max(1, -(-largest.bit_length() // VARINT_BITS))


def to_varint(values: Array, size: int) -> Array:
    """Return non-negative integers [N] as uint8 [N, size], with leading zeros, which every reader accepts."""
    groups = values[:, None] >> VARINT_BITS * np.arange(size) & 0x7F
    groups[:, :-1] |= 0x80  # more bytes follow
    return groups.astype(np.uint8)


def from_varint(stored: Array) -> tuple[Array, Array]:
    """Return the integers int64 [N] stored as uint8 [N, size], and whether each fills these bytes exactly, bool [N]."""
    more = stored & 0x80 != 0
    values = ((stored & 0x7F).astype(np.int64) << VARINT_BITS * np.arange(stored.shape[1])).sum(axis=1)
    return values, more[:, :-1].all(axis=1) & ~more[:, -1]


def _checksum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    # Masked as the format asks, since the checksum of data that holds checksums is weak.
    return CHECKSUM.pack(((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


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
