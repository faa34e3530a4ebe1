import errno
import json
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pairs import GAME, PLIES, WIDE_GAME, WidePairs, play

from seraphim.errors import RecordError, SettingsError
from seraphim.game import PlainRules, load_game
from seraphim.options import RecordOptions
from seraphim.records.examples import GameRecord, decode, encode, encode_games
from seraphim.records.files import published_files, read_examples, reading, rescued_games
from seraphim.records.index import NumberSet, played_numbers, stream_and_number, total_positions
from seraphim.records.schema import END_OF_FILE, with_end
from seraphim.records.sparse import SparseRows
from seraphim.records.tfrecord import DamageError, Feature, count_frames, frame, frames, parse_example, to_example
from seraphim.records.window import WindowReader, read_window
from seraphim.records.writer import GameWriter
from seraphim.storage import atomic

HERE = Path(__file__).parent
SUPPORT = HERE.parent / "support"
OLD_FILES = HERE / "data" / "schema-1"  # written before there were sparse policies
ALL = 1_000_000
ONE_EACH = RecordOptions(games_per_file=1)


def write(folder, seeds, options=None, game=GAME, plies=None, max_positions=None, stream=""):
    with GameWriter(folder, options or RecordOptions(), stream, max_positions) as writer:
        for seed in seeds:
            writer.add(encode(game, play(seed, game, plies=plies)))


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def names(folder):
    return [path.name for path in published_files(folder)]


def game_ids(folder):
    examples = [example for path in published_files(folder) for example in read_examples(path)]
    return [parse_example(example)["game_id"].values[0].decode() for example in examples]


def seeds_in(folder):
    return sorted({int(game_id.removeprefix("game-")) for game_id in game_ids(folder)})


def changed(example, **features):
    return to_example(parse_example(example) | features)


def write_payloads(path, payloads):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join(map(frame, payloads)))


# The schema


def test_a_game_comes_back_as_it_was():
    record = play(1)
    positions = decode(GAME, encode(GAME, record))
    np.testing.assert_array_equal(positions.states, record.states)
    np.testing.assert_array_equal(positions.actions, record.actions)
    np.testing.assert_array_equal(positions.policies, record.policies)
    np.testing.assert_array_equal(positions.root_values, record.root_values)
    np.testing.assert_array_equal(positions.observations, GAME.observe(record.states))
    np.testing.assert_array_equal(positions.legal, GAME.legal(record.states))
    np.testing.assert_array_equal(positions.plies, np.arange(PLIES))
    np.testing.assert_array_equal(positions.ends, np.arange(PLIES) == PLIES - 1)


def test_arrays_have_the_shapes_and_types_that_training_reads():
    positions = decode(GAME, encode(GAME, play(1)))
    assert positions.observations.shape == (PLIES, 2, 2)
    assert positions.observations.dtype == np.uint8
    assert positions.policies.shape == (PLIES, 300)
    for column in (positions.policies, positions.values, positions.value_weights, positions.root_values):
        assert column.dtype == np.float32


def dense(column):
    return column.dense() if isinstance(column, SparseRows) else column


def assert_equal_positions(left, right):
    for column, expected in zip(left, right, strict=True):
        assert type(column) is type(expected)
        assert dense(column).dtype == dense(expected).dtype
        np.testing.assert_array_equal(dense(column), dense(expected))


def test_a_game_of_many_actions_comes_back_as_it_was_and_stays_sparse():
    record = play(1, WIDE_GAME)
    examples = encode(WIDE_GAME, record)
    positions = decode(WIDE_GAME, examples)
    assert isinstance(positions.policies, SparseRows)
    assert isinstance(positions.legal, SparseRows)
    np.testing.assert_array_equal(positions.policies.dense(), record.policies)
    np.testing.assert_array_equal(positions.legal.dense(), WIDE_GAME.legal(record.states))
    np.testing.assert_array_equal(positions.states, record.states)
    np.testing.assert_array_equal(positions.observations, WIDE_GAME.observe(record.states))
    np.testing.assert_array_equal(positions.actions, record.actions)
    np.testing.assert_array_equal(positions.root_values, record.root_values)
    np.testing.assert_array_equal(positions.values, np.array([1, 1, -1, -1, 1, 1]) * record.result)
    np.testing.assert_array_equal(positions.plies, np.arange(PLIES))
    np.testing.assert_array_equal(positions.ends, np.arange(PLIES) == PLIES - 1)
    assert sum(map(len, examples)) < len(examples) * 5 * WIDE_GAME.num_actions / 4


@pytest.mark.parametrize("game", [GAME, WIDE_GAME])
def test_files_of_the_first_schema_are_read(game):
    positions, report = read_window(OLD_FILES / game.name, game, ALL)
    assert (report.games, report.damaged) == (2, ())
    records = [play(1, game), play(2, game, plies=3)]
    expected = decode(game, [example for record in records for example in encode(game, record)])
    assert_equal_positions(positions, expected)


def test_files_of_both_schemas_make_one_window(tmp_path):
    old = next((OLD_FILES / "wide_pairs").iterdir())
    (tmp_path / old.name).write_bytes(old.read_bytes())
    write(tmp_path, [3], game=WIDE_GAME)
    positions, _ = read_window(tmp_path, WIDE_GAME, 10)
    records = [play(1, WIDE_GAME), play(2, WIDE_GAME, plies=3), play(3, WIDE_GAME)]
    expected = np.concatenate([record.policies for record in records])[-10:]
    np.testing.assert_array_equal(positions.policies.dense(), expected)


def test_games_of_few_actions_are_written_as_they_were_before_there_were_sparse_policies(tmp_path):
    with GameWriter(tmp_path, RecordOptions()) as writer:
        writer.add(encode(GAME, play(1)))
        writer.add(encode(GAME, play(2, plies=3)))
    old, new = next((OLD_FILES / "pairs").iterdir()), published_files(tmp_path)[0]
    assert new.read_bytes() == old.read_bytes()


def test_more_positions_than_are_dense_at_a_time_come_back_in_order():
    records = [play(seed, WIDE_GAME) for seed in range(100)]
    positions = decode(WIDE_GAME, [example for game in encode_games(WIDE_GAME, records) for example in game])
    np.testing.assert_array_equal(positions.policies.dense(), np.concatenate([record.policies for record in records]))
    assert len(decode(WIDE_GAME, []).policies) == 0


@pytest.mark.parametrize(
    ("name", "values", "error", "message"),
    [
        ("observation", [b"not compressed"], DamageError, "feature 'observation' is not compressed by zlib"),
        ("observation", [zlib.compress(bytes(5))], RecordError, "5 numbers or bytes in 'observation', but .* has 4"),
        ("state", [zlib.compress(bytes(10**6))], RecordError, "17 numbers or bytes in 'state', but .* has 16"),
        ("state", [zlib.compress(bytes(16))[:-6]], RecordError, "in 'state'"),
        ("legal", [b"odd"], DamageError, "feature 'legal' has 3 bytes, expected 2 for each action"),
        ("legal", [b"\xff\xff"], RecordError, "with action 65535, but here wide_pairs has 600: the rules have changed"),
        ("policy", [0.5, 0.5], RecordError, "2 numbers or bytes in 'policy', but here wide_pairs has 19"),
    ],
)
def test_a_sparse_example_that_does_not_fit_is_refused(name, values, error, message):
    example = encode(WIDE_GAME, play(1, WIDE_GAME))[0]
    wrong = changed(example, **{name: Feature("float_list" if name == "policy" else "bytes_list", values)})
    with pytest.raises(error, match=message):
        decode(WIDE_GAME, [wrong])


def test_actions_beyond_16_bits_come_back():
    class HugePairs(WidePairs):
        num_actions = 70_000

    game = PlainRules(HugePairs())
    record = play(1, game)
    assert record.policies[:, 2**16 :].any()
    np.testing.assert_array_equal(decode(game, encode(game, record)).policies.dense(), record.policies)


@pytest.mark.parametrize("result", [1.0, -1.0, 0.5])
def test_a_value_is_the_result_for_the_player_to_move_also_when_a_player_moves_twice(result):
    positions = decode(GAME, encode(GAME, play(1)._replace(result=result)))
    np.testing.assert_array_equal(positions.values, np.array([1, 1, -1, -1, 1, 1]) * result)


def test_a_draw_is_a_value_of_zero_that_counts():
    positions = decode(GAME, encode(GAME, play(1)._replace(result=0.0)))
    assert (positions.values == 0).all()
    assert (positions.value_weights == 1).all()


def test_a_game_that_was_cut_off_has_no_weight_as_a_value():
    positions = decode(GAME, encode(GAME, play(1, plies=3)))
    assert len(positions.values) == 3
    assert (positions.values == 0).all()
    assert (positions.value_weights == 0).all()


def test_every_ply_and_action_number_comes_back():
    # One more game state than a byte of protobuf's integers can number, and every legal action.
    plies = 199
    actions = np.arange(plies) * 3 % 300
    record = play(1, plies=1)._replace(
        states=np.zeros((plies, 2), np.int64),
        actions=actions,
        policies=np.eye(300, dtype=np.float32)[actions],
        root_values=np.zeros(plies, np.float32),
        result=None,
    )
    examples = encode(GAME, record)
    positions = decode(GAME, examples)
    np.testing.assert_array_equal(positions.actions, actions)
    np.testing.assert_array_equal(positions.plies, np.arange(plies))
    assert [parse_example(example)["action"].values[0] for example in examples] == actions.tolist()


def test_state_words_keep_all_64_bits():
    record = play(1)
    extremes = np.iinfo(np.int64)
    record.states[2] = extremes.min, extremes.max
    states = np.array([[extremes.min, extremes.max]])
    example = encode(GAME, play(1, plies=1))[0]
    again = changed(example, state=Feature("bytes_list", [states.astype("<i8").tobytes()]))
    np.testing.assert_array_equal(decode(GAME, [again]).states, states)


def test_games_encoded_together_are_the_games_encoded_one_by_one():
    # Ids of different lengths, which give examples of different layouts.
    records = [play(seed, game_id=f"id-{10**seed}", plies=seed + 1) for seed in range(5)]
    assert encode_games(GAME, records) == [encode(GAME, record) for record in records]
    assert encode_games(GAME, []) == []


def test_the_message_library_writes_the_same_bytes_for_small_numbers():
    # Numbers of one byte only: ours have leading zeros where larger ones would fit.
    game = load_game("tictactoe")
    for example in encode(game, play(1, game)):
        assert to_example(parse_example(example)) == example


@pytest.mark.parametrize("game", [GAME, load_game("tictactoe")])
def test_examples_of_another_layout_are_read_by_their_names(game):
    # In tic-tac-toe those are as long as ours.
    examples = encode(game, play(1, game)) + encode(game, play(2, game))
    shuffled = [to_example(dict(sorted(parse_example(example).items()))) for example in examples]
    mixed = [ours if row % 3 else other for row, (ours, other) in enumerate(zip(examples, shuffled, strict=True))]
    for read in (shuffled, mixed):
        for column, expected in zip(decode(game, read), decode(game, examples), strict=True):
            np.testing.assert_array_equal(column, expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"policies": np.zeros((PLIES, 9), np.float32)},
            r"game 'game-0001' of pairs: policies .* \(6, 9\), not \(6, 300\)",
        ),
        ({"states": np.zeros((PLIES, 3), np.int64)}, r"states have shape \(6, 3\), not \(6, 2\)"),
        ({"root_values": np.zeros(PLIES - 1, np.float32)}, r"root_values have shape \(5,\), not \(6,\)"),
        ({"actions": np.array([0, 0, 3, 4, 0, 0])}, "game 'game-0001', ply 3, action 4: the action is not legal"),
        ({"actions": np.array([0, 0, -3, 3, 0, 0])}, "ply 2, action -3: the action is not legal"),
        ({"actions": np.array([], np.int32)}, "has 0 plies: expected an id, and 1 to 200 plies"),
        ({"game_id": ""}, "expected an id"),
        ({"policies": np.full((PLIES, 300), 1 / 300, np.float32)}, "ply 0, .* not a distribution over legal actions"),
        (
            {"policies": np.tile(np.float32([2, 0, 0, -1] + [0] * 296), (PLIES, 1))},
            "not a distribution over legal actions",
        ),
        ({"policies": np.full((PLIES, 300), np.nan, np.float32)}, "not a distribution over legal actions"),
        ({"policies": np.eye(300, dtype=np.float32)[:PLIES] * 2}, "not a distribution over legal actions"),
        (
            {"policies": play(1).policies + np.eye(1, 300, k=4, dtype=np.float32)},  # more, but for an illegal action
            "not a distribution over legal actions",
        ),
    ],
)
def test_a_record_that_breaks_the_rules_is_refused(change, message):
    good = play(0)
    with pytest.raises(RecordError, match=message):
        encode_games(GAME, [good, play(1)._replace(**change)])


def test_plies_are_counted_from_the_start_of_a_game_that_is_recorded_from_later_on():
    records = [play(0), play(1)._replace(plies=np.arange(5, 5 + PLIES))]
    plies = [decode(GAME, examples).plies.tolist() for examples in encode_games(GAME, records)]
    assert plies == [list(range(PLIES)), list(range(5, 5 + PLIES))]


def test_options_out_of_range_are_refused():
    with pytest.raises(SettingsError, match="games_per_file must be at least 1, not 0"):
        RecordOptions(games_per_file=0)


# TensorFlow reads and writes the same


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def test_tensorflow_reads_what_we_write(tf, tmp_path):
    write(tmp_path, range(5))
    positions, _ = read_window(tmp_path, GAME, ALL)
    data = tf.data.TFRecordDataset([str(path) for path in published_files(tmp_path)]).batch(ALL)
    scalar = {name: tf.io.FixedLenFeature([], tf.float32) for name in ("value", "value_weight", "root_value")}
    number = {name: tf.io.FixedLenFeature([], tf.int64) for name in ("schema", "action", "ply", "end")}
    data_of = {
        name: tf.io.FixedLenFeature([], tf.string) for name in ("observation", "state", "legal", "game", "game_id")
    }
    features = scalar | number | data_of | {"policy": tf.io.FixedLenFeature([300], tf.float32)}
    [parsed] = data.map(lambda batch: tf.io.parse_example(batch, features))
    np.testing.assert_array_equal(parsed["policy"], positions.policies)
    np.testing.assert_array_equal(parsed["value"], positions.values)
    np.testing.assert_array_equal(parsed["value_weight"], positions.value_weights)
    np.testing.assert_array_equal(parsed["root_value"], positions.root_values)
    np.testing.assert_array_equal(parsed["action"], positions.actions)
    np.testing.assert_array_equal(parsed["ply"], positions.plies)
    observations = tf.reshape(tf.io.decode_raw(parsed["observation"], tf.uint8), [-1, 2, 2])
    np.testing.assert_array_equal(observations, positions.observations)
    np.testing.assert_array_equal(tf.io.decode_raw(parsed["state"], tf.int64), positions.states)
    np.testing.assert_array_equal(tf.io.decode_raw(parsed["legal"], tf.uint8), positions.legal)
    assert set(parsed["game"].numpy()) == {b"pairs"}
    assert set(parsed["schema"].numpy()) == {1}


def test_tensorflow_reads_sparse_examples(tf, tmp_path):
    write(tmp_path, range(5), game=WIDE_GAME)
    positions, _ = read_window(tmp_path, WIDE_GAME, ALL)
    data = tf.data.TFRecordDataset([str(path) for path in published_files(tmp_path)]).batch(ALL)
    features = {name: tf.io.FixedLenFeature([], tf.string) for name in ("observation", "state", "legal")}
    [parsed] = data.map(
        lambda batch: tf.io.parse_example(batch, features | {"policy": tf.io.RaggedFeature(tf.float32)})
    )
    decompressed = {name: tf.io.decode_compressed(parsed[name], "ZLIB") for name in ("observation", "state")}
    np.testing.assert_array_equal(tf.io.decode_raw(decompressed["state"], tf.int64), positions.states)
    observations = tf.reshape(tf.io.decode_raw(decompressed["observation"], tf.uint8), [-1, 2, 2])
    np.testing.assert_array_equal(observations, positions.observations)
    legal = [np.frombuffer(row, "<u2") for row in parsed["legal"].numpy()]
    np.testing.assert_array_equal(np.concatenate(legal), positions.legal.columns)
    np.testing.assert_array_equal(parsed["policy"].flat_values, positions.policies.values)


def test_we_read_what_tensorflow_writes(tf, tmp_path):
    ours = tmp_path / "ours"
    write(ours, range(5))
    with tf.io.TFRecordWriter(str(tmp_path / "batch-0000001.tfrecord")) as writer:
        for example in read_examples(published_files(ours)[0]):
            message = tf.train.Example.FromString(example)
            # Rebuilt from values alone.
            again = tf.train.Example()
            for name, feature in message.features.feature.items():
                kind = feature.WhichOneof("kind")
                getattr(again.features.feature[name], kind).value.extend(getattr(feature, kind).value)
            writer.write(again.SerializeToString())
    for column, expected in zip(read_window(tmp_path, GAME, ALL)[0], read_window(ours, GAME, ALL)[0], strict=True):
        np.testing.assert_array_equal(column, expected)


def test_games_are_not_added_to_a_file_whose_features_are_in_another_order(tmp_path):
    write(tmp_path, range(2))
    (file,) = published_files(tmp_path)
    first, *rest = [dict(sorted(parse_example(example).items(), reverse=True)) for example in read_examples(file)]
    assert list(first)[-1] != "end"
    content = b"".join(frame(to_example(each)) for each in (first, *rest))
    file.write_bytes(content)
    write(tmp_path, [7])
    assert file.read_bytes() == content
    assert seeds_in(tmp_path) == [0, 1, 7]


def test_tensorflow_frames_records_the_same(tf, tmp_path):
    payloads = [b"", b"one", bytes(range(256)) * 300]
    with tf.io.TFRecordWriter(str(tmp_path / "file")) as writer:
        for payload in payloads:
            writer.write(payload)
    content = (tmp_path / "file").read_bytes()
    assert content == b"".join(map(frame, payloads))
    assert list(frames(content)) == payloads


def test_records_need_no_tensorflow():
    check = (
        "import sys, seraphim.records.writer, seraphim.records.viewer; "
        "sys.exit('tensorflow' in sys.modules or 'numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", check]).returncode == 0


# Writing


def test_files_are_published_when_they_hold_enough_games_and_the_rest_at_the_end(tmp_path):
    with GameWriter(tmp_path, RecordOptions(games_per_file=2)) as writer:
        writer.add(encode(GAME, play(0)))
        assert names(tmp_path) == []
        writer.add(encode(GAME, play(1)))
        assert names(tmp_path) == ["batch-0000001.tfrecord"]
        writer.add(encode(GAME, play(2)))
    assert names(tmp_path) == ["batch-0000001.tfrecord", "batch-0000002.tfrecord"]
    assert list(dict.fromkeys(game_ids(tmp_path))) == ["game-0000", "game-0001", "game-0002"]


def test_nothing_but_published_files_and_locks_is_left(tmp_path):
    write(tmp_path, range(3))
    assert sorted(path.name for path in tmp_path.iterdir()) == [".writers.lock", "batch-0000001.tfrecord"]


def test_no_games_make_no_file(tmp_path):
    write(tmp_path / "new" / "folder", [])
    assert names(tmp_path / "new" / "folder") == []


def test_games_are_published_after_ctrl_c(tmp_path):
    def interrupted():
        with GameWriter(tmp_path, RecordOptions()) as writer:
            writer.add(encode(GAME, play(0)))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert seeds_in(tmp_path) == [0]


@pytest.mark.parametrize("wrong", [slice(0), slice(PLIES - 1), slice(1, 2 * PLIES)])
def test_only_whole_games_are_taken(tmp_path, wrong):
    games = encode(GAME, play(0)) + encode(GAME, play(1))
    with GameWriter(tmp_path, RecordOptions()) as writer, pytest.raises(RecordError, match="of one whole game"):
        writer.add(games[wrong])
    assert names(tmp_path) == []


def test_numbers_go_up_also_when_old_files_are_gone(tmp_path):
    write(tmp_path, range(3), RecordOptions(games_per_file=1))
    published_files(tmp_path)[0].unlink()
    write(tmp_path, [3], ONE_EACH)
    assert names(tmp_path) == [f"batch-{number:07d}.tfrecord" for number in (2, 3, 4)]


def test_files_are_in_order_of_their_numbers_beyond_seven_digits(tmp_path):
    write(tmp_path, [0])
    published_files(tmp_path)[0].rename(tmp_path / "batch-9999999.tfrecord")
    write(tmp_path, [1], ONE_EACH)
    assert names(tmp_path) == ["batch-9999999.tfrecord", "batch-10000000.tfrecord"]


def test_several_processes_write_to_one_folder_at_once(tmp_path):
    program = (
        "import sys, test_records as t; from pathlib import Path; from seraphim.options import RecordOptions;"
        "t.write(Path(sys.argv[1]), range(int(sys.argv[2]), int(sys.argv[2]) + 20), RecordOptions(games_per_file=3))"
    )
    environment = os.environ | {"PYTHONPATH": f"{HERE}:{SUPPORT}"}
    writers = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), str(100 * number)], env=environment)
        for number in range(3)
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert len(game_ids(tmp_path)) == 60 * PLIES
    assert seeds_in(tmp_path) == [100 * number + game for number in range(3) for game in range(20)]
    assert names(tmp_path) == [f"batch-{number:07d}.tfrecord" for number in range(1, 22)]


def test_the_games_of_a_live_writer_are_left_to_it(tmp_path):
    with GameWriter(tmp_path, RecordOptions()) as first:
        first.add(encode(GAME, play(0)))
        with GameWriter(tmp_path, RecordOptions()) as second:
            assert second.rescued == []
            second.add(encode(GAME, play(1)))
        assert seeds_in(tmp_path) == [1]
    assert seeds_in(tmp_path) == [0, 1]


def test_the_whole_games_of_a_killed_writer_are_rescued_without_its_torn_tail(tmp_path):
    games = [encode(GAME, play(seed)) for seed in range(3)]
    content = b"".join(map(frame, [*games[0], *games[1], *games[2][:2]])) + frame(games[2][2])[:50]
    (tmp_path / ".killed.partial").write_bytes(content)
    with GameWriter(tmp_path, RecordOptions()) as writer:
        assert len(writer.rescued) == 2
    assert seeds_in(tmp_path) == [0, 1]
    assert len(game_ids(tmp_path)) == 2 * PLIES
    with GameWriter(tmp_path, RecordOptions()) as writer:
        assert writer.rescued == []


def flipped(content, place):
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize("where", ["payload", "length", "end", "two", "zeros"])
@pytest.mark.parametrize("own", [False, True])
def test_a_damaged_journal_is_kept_aside_and_its_whole_games_are_rescued(tmp_path, own, where):
    games = [b"".join(map(frame, encode(GAME, play(seed)))) for seed in range(6)]
    end = frame(encode(GAME, play(1))[-1])
    start = len(games[0])
    content, kept = b"".join(games), [0, 2, 3, 4, 5]
    if where == "payload":  # of a game's first record
        content = flipped(content, start + 100)
    elif where == "length":  # after which no record can be told from another
        content, kept = flipped(content, start), [0]
    elif where == "end":  # of a game's last record: the next game might be the rest of this one
        content, kept = flipped(content, start + len(games[1]) - len(end) + 50), [0, 3, 4, 5]
    elif where == "two":
        content, kept = flipped(flipped(content, 100), len(content) - 50), [1, 2, 3, 4]
    else:  # what a file system leaves after a power failure
        content, kept = content + bytes(100), list(range(6))
    (tmp_path / (".a.partial" if own else ".a.w0.partial")).write_bytes(content)
    said = []
    with GameWriter(tmp_path, RecordOptions(), "a", None, said.append) as writer:
        assert len(writer.rescued) == len(kept)
    assert seeds_in(tmp_path) == kept
    (aside,) = tmp_path.glob("*.damaged")
    assert aside.read_bytes() == content
    assert not list(tmp_path.glob(".*.partial"))
    (sentence,) = said
    assert ".partial is damaged (" in sentence
    assert sentence.endswith(f"): its {len(kept)} whole games are published, {aside} keeps it")


def test_a_journal_that_is_damaged_while_it_is_written_is_kept_aside_once(tmp_path, monkeypatch):
    said = []
    writer = GameWriter(tmp_path, RecordOptions(), "a", None, said.append)
    for seed in range(3):
        writer.add(encode(GAME, play(seed)))
    path = tmp_path / ".a.partial"
    content = flipped(path.read_bytes(), 100)
    path.write_bytes(content)
    with monkeypatch.context() as patch:
        patch.setattr("seraphim.records.writer.publish", Mock(side_effect=OSError(errno.ENOSPC, "full")))
        with pytest.raises(OSError, match="full"):
            writer.close()
    with GameWriter(tmp_path, RecordOptions(), "a", None, said.append) as writer:
        assert len(writer.rescued) == 2
    assert seeds_in(tmp_path) == [1, 2]
    assert [path.read_bytes() for path in tmp_path.glob("*.damaged")] == [content]
    assert len(said) == 2


def test_every_flipped_bit_of_a_journal_loses_two_games_at_most_or_all_behind_it(tmp_path):
    games = [encode(GAME, play(seed)) for seed in range(4)]
    content = b"".join(frame(example) for game in games for example in game)
    assert rescued_games(content) == (games, "")
    for place in range(0, len(content), 7):
        found, damage = rescued_games(flipped(content, place))
        assert damage
        assert all(game in games for game in found)
        assert len(found) >= 2 or "length" in damage or "cut short" in damage
    for length in range(0, len(content), 11):  # a process was killed: no damage
        found, damage = rescued_games(content[:length])
        assert (found, damage) == (games[: len(found)], "")


IRREGULAR = {
    "pipe": os.mkfifo,
    "dangling": lambda path: path.symlink_to("nowhere"),
    "folder": lambda path: path.mkdir(),
    "link": lambda path: path.symlink_to(path.parent.parent / "elsewhere"),
}


@pytest.mark.parametrize("kind", IRREGULAR)
def test_a_journal_that_is_no_regular_file_is_skipped_and_named(tmp_path, kind):
    folder, said = tmp_path / "games", []
    folder.mkdir()
    (tmp_path / "elsewhere").write_bytes(b"".join(map(frame, encode(GAME, play(9)))))
    IRREGULAR[kind](folder / ".x.partial")
    with GameWriter(folder, RecordOptions(), notify=said.append) as writer:
        writer.add(encode(GAME, play(0)))
    assert said == [f"skipped {folder / '.x.partial'}, which is not a regular file: remove it"]
    assert seeds_in(folder) == [0]
    assert os.path.lexists(folder / ".x.partial")
    assert (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("kind", ["pipe", "folder"])
@pytest.mark.parametrize("name", [".a.partial", ".writers.lock", ".removed.json", ".new"])
def test_a_writer_refuses_what_is_no_regular_file(tmp_path, kind, name):
    IRREGULAR[kind](tmp_path / name)
    with pytest.raises((OSError, RecordError), match=f"not a regular file|{name} is damaged: remove it"):
        write(tmp_path, [0], stream="a")


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_readers_skip_what_is_no_regular_file(tmp_path, kind):
    write(tmp_path, range(3), ONE_EACH)
    newest = tmp_path / "batch-0000004.tfrecord"
    IRREGULAR[kind](newest)
    (tmp_path / ".readers.lock").unlink(missing_ok=True)
    IRREGULAR[kind](tmp_path / ".readers.lock")
    _, report = read_window(tmp_path, GAME, ALL)
    assert (report.games, report.damaged) == (3, ((newest, "unreadable: not a regular file"),))
    assert count_frames(newest) == 0
    write(tmp_path, [3], ONE_EACH)
    assert read_window(tmp_path, GAME, ALL)[1].games == 4


@pytest.mark.parametrize("way", ["kill", "torn", "full"])
def test_no_finished_game_is_lost_or_doubled_wherever_a_writer_breaks_off(tmp_path, way):
    command = [sys.executable, SUPPORT / "crashing_writer.py", tmp_path, way]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert {line.split()[0] for line in lines} >= {"open", "write", "fsync", "ftruncate", "replace", "unlink"}
    assert [line for line in lines if line.split()[1:] != ["kept"]] == []


def test_a_full_disk_is_the_callers_error_and_a_later_writer_continues(tmp_path):
    write(tmp_path, [0])
    # As on a full disk, the system takes half a game and then no more.
    program = (
        "import resource, sys, test_records as t; from pathlib import Path;"
        "size = sum(len(t.frame(example)) for example in t.encode(t.GAME, t.play(1)));"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size * 3 // 2, size * 3 // 2));"
        "t.write(Path(sys.argv[1]), [1, 2])"
    )
    environment = os.environ | {"PYTHONPATH": f"{HERE}:{SUPPORT}"}
    done = subprocess.run([sys.executable, "-c", program, tmp_path], env=environment, capture_output=True, text=True)
    assert "OSError: [Errno 27] File too large" in done.stderr
    write(tmp_path, [3])
    assert seeds_in(tmp_path) == [0, 1, 3]


def test_a_writer_continues_when_a_full_disk_has_room_again(tmp_path):
    program = (
        "import resource, sys, pytest, test_records as t; from pathlib import Path;"
        "size = sum(len(t.frame(example)) for example in t.encode(t.GAME, t.play(1)));"
        "limit = resource.getrlimit(resource.RLIMIT_FSIZE);"
        "writer = t.GameWriter(Path(sys.argv[1]), t.RecordOptions());"
        "writer.add(t.encode(t.GAME, t.play(1)));"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size * 3 // 2, limit[1]));"
        "pytest.raises(OSError, writer.add, t.encode(t.GAME, t.play(2)));"
        "resource.setrlimit(resource.RLIMIT_FSIZE, limit);"
        "writer.add(t.encode(t.GAME, t.play(3)));"
        "writer.close()"
    )
    environment = os.environ | {"PYTHONPATH": f"{HERE}:{SUPPORT}"}
    subprocess.run([sys.executable, "-c", program, tmp_path], env=environment, check=True)
    assert seeds_in(tmp_path) == [1, 3]


def test_a_game_is_published_within_seconds_though_no_other_one_is_finished(tmp_path):
    with GameWriter(tmp_path, RecordOptions()) as writer:
        for seed in range(2):
            writer.add(encode(GAME, play(seed)))
            wait_until(lambda seeds=seed + 1: seeds_in(tmp_path) == list(range(seeds)))
        assert names(tmp_path) == ["batch-0000001.tfrecord"]


def test_games_of_many_small_runs_share_files(tmp_path):
    for seed in range(23):
        write(tmp_path, [seed], RecordOptions(games_per_file=10))
    assert seeds_in(tmp_path) == list(range(23))
    assert len(game_ids(tmp_path)) == 23 * PLIES
    assert [len(read_examples(path)) // PLIES for path in published_files(tmp_path)] == [10, 10, 3]


def test_a_damaged_file_and_one_of_another_game_are_left_as_they_are(tmp_path):
    write(tmp_path, [0])
    published_files(tmp_path)[0].write_bytes(b"damaged")
    tictactoe = load_game("tictactoe")
    write(tmp_path, [1])
    write(tmp_path, [2], game=tictactoe)
    assert names(tmp_path) == [f"batch-{number:07d}.tfrecord" for number in (1, 2, 3)]


def test_a_file_system_without_links_is_refused_before_a_game_is_written(tmp_path, monkeypatch):
    def no_links(source, target):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    with pytest.raises(SettingsError, match="this file system has no hard links: keep models and game data on"):
        write(tmp_path, [0])
    assert not list(tmp_path.glob("*.tfrecord"))


def test_no_other_writer_enters_while_the_file_system_is_checked(tmp_path, monkeypatch):
    def check(folder):
        with pytest.raises(BlockingIOError), atomic.locked(folder / ".writers.lock", wait=False):
            pass

    monkeypatch.setattr(atomic, "check_links", check)
    write(tmp_path, [0])
    assert seeds_in(tmp_path) == [0]


def test_games_that_a_killed_writer_had_published_are_not_published_again(tmp_path):
    write(tmp_path, range(2))
    left = [encode(GAME, play(seed)) for seed in range(1, 4)]
    (tmp_path / ".killed.partial").write_bytes(b"".join(frame(example) for game in left for example in game))
    with GameWriter(tmp_path, RecordOptions()) as writer:
        assert len(writer.rescued) == 2
    assert seeds_in(tmp_path) == list(range(4))
    assert len(game_ids(tmp_path)) == 4 * PLIES


# Retention


def test_files_that_no_window_reads_are_removed(tmp_path):
    write(tmp_path, range(5), ONE_EACH, max_positions=2 * PLIES)
    assert seeds_in(tmp_path) == [3, 4]
    write(tmp_path, [5], ONE_EACH, max_positions=2 * PLIES + 1)  # of one more game, a position
    assert seeds_in(tmp_path) == [3, 4, 5]


def test_runs_of_one_game_do_not_push_out_the_window(tmp_path):
    options = RecordOptions(games_per_file=10)
    write(tmp_path, range(90), options, max_positions=60 * PLIES)
    for seed in range(90, 95):
        write(tmp_path, [seed], options, max_positions=60 * PLIES)
    assert seeds_in(tmp_path)[-60:] == list(range(35, 95))
    assert len(seeds_in(tmp_path)) < 70


def test_no_file_is_removed_while_another_program_reads_the_folder(tmp_path):
    write(tmp_path, range(2), ONE_EACH)
    with reading(tmp_path):
        write(tmp_path, range(2, 4), ONE_EACH, max_positions=2 * PLIES)
        assert seeds_in(tmp_path) == [0, 1, 2, 3]
    write(tmp_path, [], ONE_EACH, max_positions=2 * PLIES)
    assert seeds_in(tmp_path) == [2, 3]


def test_games_that_were_removed_stay_played_and_their_positions_counted(tmp_path):
    write(tmp_path, [3, 0, 1, 2, *range(6, 20)], RecordOptions(games_per_file=2), max_positions=4 * PLIES)
    assert seeds_in(tmp_path) == [16, 17, 18, 19]
    assert played_numbers(tmp_path, "game") == {*range(4), *range(6, 20)}
    assert played_numbers(tmp_path, "other") == set()
    assert total_positions(tmp_path) == 18 * PLIES


def test_a_removal_that_was_broken_off_is_finished_and_counts_nothing_twice(tmp_path):
    write(tmp_path, range(3), ONE_EACH)
    oldest = published_files(tmp_path)[0]
    content = oldest.read_bytes()
    write(tmp_path, [], ONE_EACH, max_positions=2 * PLIES)
    oldest.write_bytes(content)  # as if the program had been killed before it removed the file
    assert total_positions(tmp_path) == 3 * PLIES
    assert len(read_window(tmp_path, GAME, ALL)[0].plies) == 2 * PLIES
    write(tmp_path, [3], ONE_EACH, max_positions=2 * PLIES)
    assert seeds_in(tmp_path) == [2, 3]
    assert total_positions(tmp_path) == 4 * PLIES


def test_numbers_of_files_are_not_taken_again_when_all_are_gone(tmp_path):
    write(tmp_path, range(3), ONE_EACH, max_positions=PLIES)
    for path in published_files(tmp_path):
        path.unlink()
    write(tmp_path, [3], ONE_EACH)
    assert seeds_in(tmp_path) == [3]
    assert len(read_window(tmp_path, GAME, ALL)[0].plies) == PLIES


@pytest.mark.parametrize(
    "content",
    [
        "[", "null", "{}", "[" * 200_000,
        *(json.dumps({"through": 1, "positions": 6, "streams": {}} | wrong) for wrong in (
            {"through": "a"}, {"through": None}, {"through": -1}, {"through": True}, {"through": 1.5},
            {"positions": "a"}, {"positions": None}, {"positions": -1},
            {"streams": []}, {"streams": {"a": 1}}, {"streams": {"a": [[0]]}}, {"streams": {"a": [[0, "b"]]}},
            {"streams": {"a": [[2, 1]]}}, {"streams": {"a": [[-1, 1]]}}, {"streams": {"a": [[0, 2], [1, 3]]}},
            {"streams": {"a": [[0, 1], [2, 10**15]]}},
        )),
    ],
    ids=lambda content: content[:90],
)  # fmt: skip
def test_a_damaged_list_of_what_was_removed_is_named(tmp_path, content):
    write(tmp_path, range(3), ONE_EACH, max_positions=PLIES)
    (tmp_path / ".removed.json").write_text(content)
    with pytest.raises(RecordError, match=r"\.removed\.json is damaged: remove it"):
        read_window(tmp_path, GAME, ALL)


@given(st.lists(st.integers(0, 30)), st.sets(st.tuples(st.integers(0, 9), st.integers(1, 3))))
def test_a_set_of_numbers_is_a_set(numbers, starts):
    ranges = [[10 * first, 10 * first + length] for first, length in dict(starts).items()]
    expected = {number for first, end in ranges for number in range(first, end)}
    found = NumberSet(sorted(ranges))
    for number in numbers:
        found.add(number)
        expected.add(number)
        assert found == expected
        assert found.first_missing == min(set(range(200)) - expected)
    assert list(found) == sorted(expected)


def test_a_stream_is_free_again_after_its_writer_could_not_be_opened(tmp_path):
    write(tmp_path, range(3), ONE_EACH, max_positions=PLIES)
    (tmp_path / ".removed.json").rename(tmp_path / "kept")
    (tmp_path / ".removed.json").write_text("[")
    for _ in range(2):
        with pytest.raises(RecordError, match=r"\.removed\.json is damaged: remove it"):
            GameWriter(tmp_path, RecordOptions(), "a")
    (tmp_path / "kept").replace(tmp_path / ".removed.json")
    with GameWriter(tmp_path, RecordOptions(), "a") as writer:
        writer.add(encode(GAME, play(3)))
    assert seeds_in(tmp_path) == [2, 3]


# Reading


def test_a_window_is_the_newest_positions_in_the_order_of_the_games(tmp_path):
    write(tmp_path, range(6), RecordOptions(games_per_file=2))
    everything, report = read_window(tmp_path, GAME, ALL)
    assert report == (3, 6, 6 * PLIES, (), 3)
    expected = [decode(GAME, encode(GAME, play(seed))) for seed in range(6)]
    np.testing.assert_array_equal(everything.policies, np.concatenate([game.policies for game in expected]))
    window, report = read_window(tmp_path, GAME, 20)
    assert report == (2, 4, 20, (), 3)
    for column, whole in zip(window, everything, strict=True):
        np.testing.assert_array_equal(column, whole[-20:])


def store_in_any_order(folder, streams, rng):
    """Store the games of streams, one stream after the other: its games in any order, by several runs and writers."""
    for stream, count in streams:
        numbers = rng.permutation(count).tolist()
        while numbers:
            run, numbers = numbers[: rng.integers(1, 9)], numbers[8:] if len(numbers) > 8 else []
            options = RecordOptions(games_per_file=int(rng.integers(1, 6)))
            with GameWriter(folder, options) as one, GameWriter(folder, options) as other:
                for number in run:
                    writer = one if rng.random() < 0.5 else other
                    writer.add(encode(GAME, play(number, game_id=f"{stream}-{number}", plies=1 + number % PLIES)))


@pytest.mark.parametrize("seed", range(6))
def test_the_same_games_give_the_same_window_however_they_were_stored(tmp_path, seed):
    streams = [("0-0", 17), ("0-8", 9), ("other", 12)]
    store_in_any_order(tmp_path, streams, np.random.default_rng(seed))
    stored = [stream_and_number(name) for name in dict.fromkeys(game_ids(tmp_path))]
    names = [stream for stream, _ in streams]
    stored.sort(key=lambda game: (names.index(game[0]), game[1]))
    records = [play(number, game_id=f"{s}-{number}", plies=1 + number % PLIES) for s, number in stored]
    expected = [decode(GAME, encode(GAME, record)) for record in records]
    for size in (ALL, 60, 41, 40, 5, 1):
        window, _ = read_window(tmp_path, GAME, size)
        for column, games in zip(window, zip(*expected, strict=True), strict=True):
            np.testing.assert_array_equal(column, np.concatenate(games)[-size:])


def test_what_is_removed_leaves_the_window_as_it_is(tmp_path):
    rng = np.random.default_rng(1)
    store_in_any_order(tmp_path, [("0-0", 40), ("0-8", 60)], rng)
    before = read_window(tmp_path, GAME, 100)[0]
    write(tmp_path, [], max_positions=100)
    assert total_positions(tmp_path) > len(read_window(tmp_path, GAME, ALL)[0].plies) >= 100
    for column, expected in zip(read_window(tmp_path, GAME, 100)[0], before, strict=True):
        np.testing.assert_array_equal(column, expected)


def test_streams_that_were_written_at_once_share_the_window_as_they_were_stored(tmp_path):
    names = ["a-1", "b-5", "a-0", "a-2", "b-4"]
    with GameWriter(tmp_path, RecordOptions()) as writer:
        for name in names:
            writer.add(encode(GAME, play(ord(name[0]) + int(name[2:]), game_id=name, plies=1)))
    actions = {name: play(ord(name[0]) + int(name[2:]), plies=1).actions[0] for name in names}
    window, _ = read_window(tmp_path, GAME, 4)
    assert window.actions.tolist() == [actions[name] for name in ("b-4", "a-1", "a-2", "b-5")]


@pytest.mark.parametrize("most_kept", [2**31, 150_000, 0])
def test_windows_read_one_after_the_other_are_those_read_afresh(tmp_path, monkeypatch, most_kept):
    decoded = []

    def counted(game, examples):
        decoded.append(len(examples))
        return decode(game, examples)

    monkeypatch.setattr("seraphim.records.window.decode", counted)
    monkeypatch.setattr("seraphim.records.window.MOST_KEPT", most_kept)
    reader, counts = WindowReader(tmp_path, GAME), list[int]()
    for number in range(5):
        write(tmp_path, range(20 * number, 20 * number + 20), RecordOptions(games_per_file=10))
        if number == 3:  # another file takes the place of the newest
            path = published_files(tmp_path)[-1]
            path.write_bytes(published_files(tmp_path)[-2].read_bytes())
        decoded.clear()
        window, report = reader.read(50 * PLIES)
        counts.append(sum(decoded))
        fresh, expected = read_window(tmp_path, GAME, 50 * PLIES)
        assert report == expected
        for column, other in zip(window, fresh, strict=True):
            np.testing.assert_array_equal(column, other)
    if most_kept == 2**31:
        assert counts == 5 * [20 * PLIES]
    elif most_kept:
        assert counts[0] == 20 * PLIES < counts[-1] < 50 * PLIES
    else:
        assert counts[-1] == 50 * PLIES


def test_a_window_opens_only_the_files_it_needs(tmp_path):
    write(tmp_path, range(3), RecordOptions(games_per_file=1))
    published_files(tmp_path)[0].write_bytes(b"damaged")
    assert read_window(tmp_path, GAME, 2 * PLIES)[1].damaged == ()


def test_a_file_damaged_in_any_byte_is_noticed(tmp_path):
    write(tmp_path, [0], game=load_game("tictactoe"), plies=2)
    path = published_files(tmp_path)[0]
    content = path.read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(DamageError, match=r"corrupt|truncated"):
            read_examples(path)


def test_a_file_cut_off_anywhere_is_noticed(tmp_path):
    write(tmp_path, range(2), game=load_game("tictactoe"), plies=2)
    path = published_files(tmp_path)[0]
    content = path.read_bytes()
    for size in range(len(content)):
        path.write_bytes(content[:size])
        with pytest.raises(DamageError, match="truncated"):
            read_examples(path)


def test_a_damaged_file_is_named_and_skipped_and_the_others_are_read(tmp_path):
    write(tmp_path, range(3), RecordOptions(games_per_file=1))
    path = published_files(tmp_path)[1]
    path.write_bytes(path.read_bytes()[:-1])
    positions, report = read_window(tmp_path, GAME, ALL)
    start = path.stat().st_size // PLIES * (PLIES - 1) + PLIES - 1
    assert report.damaged == ((path, f"truncated: the record at byte {start:,} is cut short"),)
    assert report[:3] == (2, 2, 2 * PLIES)
    np.testing.assert_array_equal(positions.actions, np.concatenate([play(0).actions, play(2).actions]))


def test_something_else_under_the_name_of_a_file_is_skipped(tmp_path):
    write(tmp_path, [0])
    (tmp_path / "batch-0000002.tfrecord").mkdir()
    write_payloads(tmp_path / "batch-0000003.tfrecord", [b"no example"])
    reasons = [reason for _, reason in read_window(tmp_path, GAME, ALL)[1].damaged]
    assert reasons == ["a record is not a tf.train.Example", "unreadable: not a regular file"]


def test_another_schema_version_is_skipped_with_its_number(tmp_path):
    write(tmp_path, range(2), RecordOptions(games_per_file=1))
    newest = published_files(tmp_path)[1]
    write_payloads(newest, [changed(e, schema=Feature("int64_list", [3])) for e in read_examples(newest)])
    _, report = read_window(tmp_path, GAME, ALL)
    reason = "schema version 3, expected 1 or 2: not written by this version of Seraphim"
    assert report.damaged == ((newest, reason),)


def test_one_record_of_another_schema_makes_its_file_damaged(tmp_path):
    write(tmp_path, range(2), RecordOptions(games_per_file=1))
    newest = published_files(tmp_path)[1]
    examples = read_examples(newest)
    examples[3] = changed(examples[3], schema=Feature("int64_list", [2]))
    write_payloads(newest, examples)
    assert read_window(tmp_path, GAME, ALL)[1].files == 1


def test_a_missing_feature_is_damage():
    features = parse_example(encode(GAME, play(0))[0])
    del features["policy"]
    with pytest.raises(DamageError, match="feature 'policy' is missing or not a float_list"):
        decode(GAME, [to_example(features)])


def test_luck_is_kept_where_chance_moves_and_0_where_it_is_missing():
    game = load_game("pig")
    states = game.step(game.step(game.initial(1), np.array([0])), np.array([1]))
    record = GameRecord(
        "0-0", states, np.array([0]), np.array([[1, 0]]), np.zeros(1), 1.0, luck=np.array([-0.25], np.float32)
    )
    (example,) = encode(game, record)
    assert decode(game, [example]).luck.tolist() == [-0.25]
    features = parse_example(example)
    del features["luck"]
    assert decode(game, [to_example(features), example]).luck.tolist() == [0.0, -0.25]
    assert decode(game, encode(game, record._replace(luck=None))).luck.tolist() == [0.0]
    for wrong in (2.5, -2.5, np.nan):
        with pytest.raises(DamageError, match="a record has no luck from -2 to 2"):
            decode(game, [changed(example, luck=Feature("float_list", [wrong]))])
    with pytest.raises(RecordError, match="luck have shape"):
        encode(game, record._replace(luck=np.zeros(2)))
    assert "luck" not in parse_example(encode(GAME, play(0))[0])


def test_two_numbers_in_the_place_of_one_are_noticed():
    # They are as long as one that has a leading zero.
    example = changed(encode(GAME, play(0))[1], ply=Feature("int64_list", [1, 0]))
    with pytest.raises(RecordError, match="2 numbers or bytes in 'ply'"):
        decode(GAME, [encode(GAME, play(0))[0], example])


def test_data_of_another_game_is_refused_with_both_names(tmp_path):
    write(tmp_path, [0])
    with pytest.raises(
        RecordError, match=r"batch-0000001.tfrecord holds positions of pairs, but the game is tictactoe"
    ):
        read_window(tmp_path, load_game("tictactoe"), ALL)


def test_a_single_record_of_another_game_is_refused(tmp_path):
    write(tmp_path, [0])
    path = published_files(tmp_path)[0]
    examples = read_examples(path)
    examples[2] = changed(examples[2], game=Feature("bytes_list", [b"riaps"]))
    write_payloads(path, examples)
    with pytest.raises(RecordError, match="holds positions of riaps, but the game is pairs"):
        read_window(tmp_path, GAME, ALL)


def test_data_of_a_game_whose_rules_have_changed_is_refused():
    example = changed(encode(GAME, play(0))[0], observation=Feature("bytes_list", [bytes(9)]))
    with pytest.raises(
        RecordError, match="of pairs with 9 numbers or bytes in 'observation', but here pairs has 4: the ru"
    ):
        decode(GAME, [example])


FLOATS = {"value": -1.0, "root_value": -1.0, "value_weight": 0.0, "policy_weight": 0.0}  # the least of each


@pytest.mark.parametrize("game", [GAME, WIDE_GAME])
@pytest.mark.parametrize(
    ("name", "number", "message"),
    [
        ("ply", -1, "a record has no ply from 0 to 199"),
        ("ply", 200, "a record has no ply from 0 to 199"),
        ("ply", 2**62, "a record has no ply from 0 to 199"),
        ("action", -1, "a record has no legal action"),
        ("action", 1, "a record has no legal action"),
        ("action", 600, "a record has no legal action"),
        *((name, bad, f"a record has no {name} from {least:.0f} to 1")
          for name, least in FLOATS.items() for bad in (np.nan, np.inf, least - 0.5, 1.5)),
    ],
)  # fmt: skip
def test_a_number_that_is_out_of_range_makes_its_file_damaged(tmp_path, game, name, number, message):
    whole = encode(game, play(0, game))
    kind = "float_list" if name in FLOATS else "int64_list"
    wrong = [*whole[:2], changed(whole[2], **{name: Feature(kind, [number])}), *whole[3:]]
    with pytest.raises(DamageError, match=message):
        decode(game, wrong)
    write(tmp_path, [1], game=game)
    write_payloads(tmp_path / "batch-0000002.tfrecord", [*wrong[:-1], with_end(wrong[-1], END_OF_FILE)])
    window, report = read_window(tmp_path, game, ALL)
    assert len(window.plies) == PLIES
    assert report.damaged == ((tmp_path / "batch-0000002.tfrecord", message),)


@pytest.mark.parametrize("game", [GAME, WIDE_GAME])
@pytest.mark.parametrize("change", [np.nan, np.inf, -0.5, 0.5])
def test_a_policy_that_is_no_distribution_makes_its_file_damaged(game, change):
    example = encode(game, play(0, game))[1]
    policy = parse_example(example)["policy"].values
    wrong = changed(example, policy=Feature("float_list", [policy[0] + change, *policy[1:]]))
    with pytest.raises(DamageError, match="a record has no policy over its legal actions"):
        decode(game, [wrong])


def test_a_policy_on_illegal_actions_makes_its_file_damaged():
    example = encode(GAME, play(0))[1]
    policy = np.roll(parse_example(example)["policy"].values, 1)
    with pytest.raises(DamageError, match="a record has no policy over its legal actions"):
        decode(GAME, [changed(example, policy=Feature("float_list", policy))])


def test_a_position_of_weight_0_may_have_no_policy():
    none = {"policy": Feature("float_list", np.zeros(GAME.num_actions))}
    example = changed(encode(GAME, play(0))[1], **none)
    with pytest.raises(DamageError, match="a record has no policy over its legal actions"):
        decode(GAME, [example])
    assert not decode(GAME, [changed(example, policy_weight=Feature("float_list", [0.0]))]).policies.any()


def test_no_data_says_what_to_run(tmp_path):
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(RecordError, match=r"no game data in .*: run seraphim generate \S+ first"):
            read_window(folder, GAME, ALL)


def test_only_damaged_data_says_what_to_do(tmp_path):
    (tmp_path / "batch-0000001.tfrecord").touch()
    with pytest.raises(RecordError, match=r"all 1 files in .* are damaged \(batch-0000001.tfrecord: truncated"):
        read_window(tmp_path, GAME, ALL)


def test_all_positions_ever_are_counted(tmp_path):
    assert total_positions(tmp_path) == 0
    options = RecordOptions(games_per_file=2)
    write(tmp_path, range(5), options)
    assert total_positions(tmp_path) == 5 * PLIES
    write(tmp_path, range(10, 20), options, max_positions=6 * PLIES)
    assert len(names(tmp_path)) == 3
    assert total_positions(tmp_path) == 15 * PLIES
