import gzip
import io
import os
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import programs
import pytest
from pairs import GAME, PLIES, play
from rich.console import Console

from seraphim.errors import GameError, RecordError
from seraphim.game import load_game
from seraphim.options import RecordOptions
from seraphim.records.display import hexdump, summarize
from seraphim.records.examples import GameRecord, decode, encode
from seraphim.records.schema import END_OF_FILE, with_end
from seraphim.records.tfrecord import Feature, frame, parse_example, to_example
from seraphim.records.viewer import RecordFilter, show_records, show_summary
from seraphim.records.writer import GameWriter
from seraphim.terminal import game_files

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "bin" / "tfrecord_viewer.py"


def tictactoe_game(game_id, moves, result):
    """Return a game of the cells of `moves`; a quarter of the visits went to the first other legal cell."""
    game = load_game("tictactoe")
    states = [game.initial(1)[0]]
    policies = []
    for action in moves:
        policy = np.zeros(9, np.float32)
        others = [cell for cell in np.flatnonzero(game.legal(states[-1][None])[0]) if cell != action]
        policy[others[:1]] = 0.25
        policy[action] = 0.75 if others else 1
        policies.append(policy)
        states.append(game.step(states[-1][None], np.array([action]))[0])
    root_values = np.full(len(moves), 0.25, np.float32)
    return encode(
        game, GameRecord(game_id, np.array(states[:-1]), np.array(moves), np.array(policies), root_values, result)
    )


# X wins, O wins, draw, and X's win again.
GAMES = [
    tictactoe_game("one", [4, 0, 3, 1, 5], 1.0),
    tictactoe_game("two", [0, 4, 1, 3, 8, 5], -1.0),
    tictactoe_game("three", [4, 0, 1, 7, 6, 2, 5, 3, 8], 0.0),
    tictactoe_game("four", [4, 0, 3, 1, 5], 1.0),
]


# What a tf.train.SequenceExample looks like, whose first part is that of an example.
NO_EXAMPLE = to_example({"context": Feature("int64_list", [1])}) + b"\x12\x00"


@pytest.fixture
def folder(tmp_path):
    with GameWriter(tmp_path / "data", RecordOptions(games_per_file=2)) as writer:
        for game in GAMES:
            writer.add(game)
    return tmp_path / "data"


def shown(path, show=show_records, *arguments):
    console = Console(width=160, record=True, file=io.StringIO())
    show(path, console, *arguments)
    return console.export_text()


def write_payloads(path, *payloads):
    path.write_bytes(b"".join(map(frame, payloads)))
    return path


def test_a_position_is_drawn_with_its_board_its_visits_and_what_was_played(folder):
    text = shown(folder / "batch-0000001.tfrecord", show_records, RecordFilter(record=4))
    lines = [line.rstrip() for line in text.splitlines()]
    assert lines[0].startswith("batch-0000001.tfrecord · record 4 ──")
    assert [line[:7] for line in lines[1:5]] == ["  a b c", "1 O O ·", "2 X X ·", "3 · · ·"]
    assert "c2  75.0% ██████████████████████ ← played" in lines[1]
    assert "c1  25.0% ████████" in lines[2]
    assert "c3   0.0%" in lines[5]
    assert "game     one, ply 4" in text
    assert "to move  player 0" in text
    assert "search   +0.25 for the player to move" in text
    assert "result   +1.00 (won) for the player to move" in text
    assert "played   c2" in text
    assert "a1" not in text


def test_without_a_choice_the_first_game_of_the_newest_file_is_shown(folder):
    text = shown(folder, show_records, RecordFilter())
    assert text.count("batch-0000002.tfrecord · record") == 9
    assert text.count("game     three, ply") == 9


def test_records_are_chosen_by_number_limit_and_game(folder):
    first = folder / "batch-0000001.tfrecord"
    assert shown(first, show_records, RecordFilter(limit=7)).count("· record") == 7
    text = shown(first, show_records, RecordFilter(record=4, limit=2))
    assert "record 4 " in text
    assert "record 5 " in text
    assert text.count("· record") == 2
    text = shown(folder, show_records, RecordFilter(game_id="two"))
    assert text.count("game     two, ply") == text.count("· record") == 6
    assert "batch-0000001.tfrecord · record 5 " in text


def test_a_game_without_a_result_says_so(tmp_path):
    path = write_payloads(tmp_path / "file", *encode(GAME, play(0, plies=1)))
    assert "result   none: cut off" in shown(path, show_records, RecordFilter())


def test_a_long_list_of_actions_is_cut(tmp_path):
    path = write_payloads(tmp_path / "file", *encode(GAME, play(0)))
    text = shown(path, show_records, RecordFilter(record=0))
    assert "88 more" in text
    assert text.count("← played") == 1


def test_a_choice_that_is_not_there_is_an_error(folder):
    with pytest.raises(RecordError, match="no game 'nix' in "):
        shown(folder, show_records, RecordFilter(game_id="nix"))
    with pytest.raises(RecordError, match=r"no record 99 in .*batch-0000002.tfrecord: records are counted from 0"):
        shown(folder, show_records, RecordFilter(record=99))
    with pytest.raises(RecordError, match="there is no file or folder"):
        shown(folder / "nix", show_records, RecordFilter())
    (folder / "batch-0000009.tfrecord").touch()
    with pytest.raises(RecordError, match=r"no records in .*batch-0000009.tfrecord: the file is empty"):
        shown(folder / "batch-0000009.tfrecord", show_records, RecordFilter())
    with pytest.raises(RecordError, match=r"no TFRecord file in .*: run seraphim generate first"):
        shown(Path(__file__).parent, show_records, RecordFilter())


def test_a_damaged_file_is_shown_as_far_as_it_is_whole(folder):
    path = folder / "batch-0000002.tfrecord"
    path.write_bytes(path.read_bytes()[:-1])
    text = shown(folder, show_records, RecordFilter(limit=99))
    assert text.count("· record") == 9 + 4
    assert "is damaged (truncated: the record at byte" in text.replace("\n", " ")


def test_a_record_of_an_unknown_game_is_shown_by_its_features(tmp_path):
    example = to_example(parse_example(GAMES[0][0]) | {"game": Feature("bytes_list", [b"nosuchgame"])})
    path = write_payloads(tmp_path / "file", example)
    text = shown(path, show_records, RecordFilter())
    assert "nosuchgame" in text
    assert "--game names the game's module" in text.replace("\n", " ")
    with pytest.raises(GameError, match="there is no game 'neither'"):
        shown(path, show_records, RecordFilter(), "neither")
    with pytest.raises(RecordError, match="holds positions of nosuchgame, but the game is tictactoe"):
        shown(path, show_records, RecordFilter(), "tictactoe")


def test_foreign_examples_are_shown_by_their_features(tmp_path):
    features = {
        "label": Feature("int64_list", [-3]),
        "weights": Feature("float_list", [0.5] * 100),
        "text": Feature("bytes_list", [b"hello [bold]"]),
        "image": Feature("bytes_list", [b"\x00\xff" * 50]),
        "nothing": Feature("empty", []),
    }
    text = shown(write_payloads(tmp_path / "file", *[to_example(features)] * 5), show_records, RecordFilter())
    assert text.count("· record") == 3
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "label int64 1 -3" in lines
    assert "weights float 100 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, …" in lines
    assert "text bytes 1 12 bytes: 'hello [bold]'" in lines
    assert "image bytes 1 100 bytes: " + " ".join(["00 ff"] * 12) in lines
    assert "nothing empty 0" in lines


@pytest.mark.parametrize("payload", [b"", b"hello world, this is text", bytes(range(256)) * 2, NO_EXAMPLE])
def test_records_that_are_no_examples_are_shown_by_their_bytes(tmp_path, payload):
    text = shown(write_payloads(tmp_path / "file", payload), show_records, RecordFilter())
    assert f"{len(payload)} bytes, not a tf.train.Example" in text
    assert hexdump(payload).plain.splitlines()[-1] in text


def test_a_dump_has_offsets_hexadecimals_and_what_is_printable():
    assert hexdump(b"AB\x00" * 6).plain.splitlines()[1:] == [
        "000000  41 42 00 41 42 00 41 42 00 41 42 00 41 42 00 41  AB.AB.AB.AB.AB.A",
        "000010  42 00                                            B.",
    ]
    assert hexdump(bytes(1000)).plain.splitlines()[-1] == "… 744 more bytes"


@pytest.mark.parametrize("compress", [gzip.compress, zlib.compress])
def test_compressed_files_are_shown(tmp_path, compress):
    path = write_payloads(tmp_path / "file", *GAMES[0])
    path.write_bytes(compress(path.read_bytes()))
    assert "game     one, ply 0" in shown(path, show_records, RecordFilter())


def test_a_summary_counts_games_results_moves_and_duplicates():
    game = load_game("tictactoe")
    summary = summarize(game, decode(game, [example for examples in GAMES for example in examples]))
    assert summary.games == 4
    assert summary.positions == 25
    assert (summary.first_wins, summary.draws, summary.second_wins, summary.cut_off) == (2, 1, 1, 0)
    assert summary.distinct_games == 3
    assert summary.moves[0] == {"b2": 3, "a1": 1}
    assert summary.distinct[:4] == [1, 2, 2, 3]
    assert [moves.total() for moves in summary.moves] == [4, 4, 4, 4, 4, 2, 1, 1, 1]
    assert summary.distinct_positions == sum(summary.distinct) == 16


def test_a_summary_counts_games_that_were_cut_off_apart_from_draws():
    games = [play(seed, plies=3) for seed in range(3)] + [play(9)._replace(result=0.0)]
    summary = summarize(GAME, decode(GAME, [example for game in games for example in encode(GAME, game)]))
    assert (summary.cut_off, summary.draws) == (3, 1)


def test_the_first_player_is_the_first_also_where_the_last_move_is_the_seconds():
    games = [play(seed) for seed in range(30)]
    summary = summarize(GAME, decode(GAME, [example for game in games for example in encode(GAME, game)]))
    results = [game.result for game in games]
    assert summary.first_wins == results.count(1.0)
    assert summary.second_wins == results.count(-1.0)
    assert summary.positions == 30 * PLIES


def test_a_summary_of_games_that_are_not_recorded_from_their_start(tmp_path):
    record = play(1)
    late = record._replace(
        **{name: getattr(record, name)[2:] for name in ("states", "actions", "policies", "root_values")},
        plies=np.arange(2, PLIES),
    )
    *examples, last = encode(GAME, late)
    text = shown(write_payloads(tmp_path / "file", *examples, with_end(last, END_OF_FILE)), show_summary)
    assert "6.0 plies on average" in text
    assert "positions  4," in text


def test_a_player_alone_sees_points_where_two_see_who_wins(tmp_path):
    game = load_game("cube")
    scrambled = game.step(game.step(game.initial(1), np.array([1])), np.array([3]))  # by two turns: R, and
    states = [game.step(scrambled, np.array([0]))[0]]  # U
    actions = [2, 5]  # which U' and R' solve
    states.append(game.step(states[0][None], np.array(actions[:1]))[0])
    record = GameRecord(
        "one",
        np.array(states),
        np.array(actions),
        np.eye(9, dtype=np.float32)[actions],
        np.array([-0.05, -0.04], np.float32),
        -0.04,
        np.array([3, 4]),
    )
    with GameWriter(tmp_path / "data", RecordOptions()) as writer:
        writer.add(encode(game, record))
    text = shown(tmp_path / "data", show_records, RecordFilter(record=0))
    assert "search   -2.5 points" in text
    assert "result   -2 points" in text
    assert "results    -2 points on average" in shown(tmp_path / "data", show_summary)


def test_a_summary_tells_games_from_different_positions_apart():
    late = play(1)
    late = late._replace(
        **{name: getattr(late, name)[2:] for name in ("states", "actions", "policies", "root_values")},
        plies=np.arange(2, PLIES),
    )
    other = late._replace(states=late.states + np.array([0, 3]))  # another sum that gives the same result
    summary = summarize(GAME, decode(GAME, [example for game in (late, other, late) for example in encode(GAME, game)]))
    assert (summary.games, summary.distinct_games) == (3, 2)


def test_a_summary_is_printed_with_every_file(folder):
    (folder / "batch-0000003.tfrecord").touch()
    text = shown(folder, show_summary)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "games 4 of tictactoe, 3 (75.0%) distinct" in lines
    assert "results 2 (50.0%) won by the first player, 1 (25.0%) drawn, 1 (25.0%) won by the second player" in lines
    assert "length 6.2 plies on average, at most 9" in lines
    assert "positions 25, 16 (64.0%) distinct" in lines
    assert "b2 75.0% ██████████████████████" in lines
    assert "0 4 1 (25.0%) b2 75.0% a1 25.0%" in lines
    assert any(line.startswith("batch-0000001.tfrecord 2 11 ") for line in lines)
    assert any(line.startswith("batch-0000003.tfrecord damaged (truncated") for line in lines)


def test_a_summary_of_a_file_cut_off_between_two_games_calls_it_damaged(folder):
    write_payloads(folder / "batch-0000001.tfrecord", *GAMES[0])
    assert "the end of the file is missing" in shown(folder, show_summary)


def test_a_summary_of_foreign_files_counts_records(tmp_path):
    write_payloads(tmp_path / "some.tfrecord", b"one", b"three")
    assert "some.tfrecord  foreign  2          8" in shown(tmp_path, show_summary)


def run_viewer(*arguments, shell_pipe=""):
    command = " ".join([sys.executable, str(PROGRAM), *map(str, arguments)]) + shell_pipe
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True)


def test_the_program_shows_records_to_a_pipe_that_closes_early(folder):
    done = run_viewer(folder, shell_pipe=" | head -n 1")
    assert done.stdout.startswith("batch-0000002.tfrecord · record 0 ──")
    assert done.stderr == ""


def test_the_program_prints_a_summary(folder):
    done = run_viewer(folder, "--summary")
    assert done.returncode == 0
    assert "won by the first player" in done.stdout


@pytest.fixture
def root(folder):
    """A data root with the games of the model `mine`, the newest of which is `three`."""
    folder.rename(folder.parent / "mine")
    (folder.parent / "gamedata").mkdir()
    (folder.parent / "mine").rename(folder.parent / "gamedata/mine")
    return folder.parent


def view(root, *arguments, **environment):
    environment = {**os.environ, "SERAPHIM_MODEL_NAME": "", "SERAPHIM_DATA": "", **environment}
    command = [sys.executable, PROGRAM, *arguments]
    return programs.run(command, cwd=root, env=environment)


def test_a_models_name_stands_for_its_games(root, tmp_path_factory):
    by_path = view(root, "gamedata/mine")
    assert "game     three, ply 0" in by_path.stdout
    assert view(root, "mine").stdout == by_path.stdout
    assert view(root, SERAPHIM_MODEL_NAME="mine").stdout == by_path.stdout
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert view(elsewhere, "mine", SERAPHIM_DATA=str(root)).stdout == by_path.stdout


def test_a_name_alone_means_the_model_and_a_path_the_path(root):
    (root / "mine").mkdir()
    write_payloads(root / "mine" / "some.tfrecord", b"one")
    assert "three" in view(root, "mine").stdout
    for path in ("./mine", "mine/", "mine/some.tfrecord", str(root / "mine")):
        done = view(root, path)
        assert done.stdout.startswith("some.tfrecord · record 0"), path
    (root / "gamedata/mine").rename(root / "gamedata/other")
    for path in ("mine", "mine/some.tfrecord"):
        assert view(root, path).stdout.startswith("some.tfrecord · record 0"), path
    for path in (".", "..", "some.tfrecord"):
        assert view(root / "mine", path, "--summary").stdout.count("some.tfrecord") == (path != ".."), path


@pytest.mark.parametrize("there", [False, True])
def test_a_name_without_games_says_how_to_get_some(root, there):
    if there:
        (root / "nobody").mkdir()  # such as the folder of a game in a clone
    done = view(root, "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "seraphim view: there are no games in gamedata/nobody, and no records in nobody: "
        "run seraphim generate nobody first, or name another model, file or folder\n"
    )


def test_the_program_says_what_it_expects(tmp_path):
    done = view(tmp_path)
    assert done.returncode == 1
    assert done.stderr == "seraphim view: which model? Try: seraphim view NAME, or set SERAPHIM_MODEL_NAME\n"
    assert "expected one model NAME, not 2 arguments: a b" in view(tmp_path, "a", "b").stderr


def test_states_that_play_does_not_lead_to_are_not_shown(tmp_path):
    """Their checksums are right, but the ninth bit of a word is no cell: the rules would move for the wrong player."""
    game, file = load_game("tictactoe"), tmp_path / "ghost.tfrecord"
    states = np.array([[0, 1 << 9], [1, 1 << 9]])
    policies = np.eye(9, dtype=np.float32)[:2]
    record = GameRecord("0-0", states, np.array([0, 1]), policies, np.zeros(2, np.float32), 1.0)
    *others, last = encode(game, record)
    write_payloads(file, *others, with_end(last, END_OF_FILE))
    ghost = "these words are not a position of tictactoe: play does not lead there"
    with pytest.raises(RecordError, match=f"ghost.tfrecord holds .*{ghost}"):
        show_summary(file, Console(file=io.StringIO()))
    shown = io.StringIO()
    show_records(file, Console(file=shown, width=400), RecordFilter())
    assert ghost in shown.getvalue() and "to move" not in shown.getvalue()
    with pytest.raises(GameError, match=ghost):
        game_files.find("tictactoe", f"{file}:1")


def changed(examples, row, **features):
    """Return the examples of a file whose record `row` has other features."""
    examples = [*examples[:-1], with_end(examples[-1], END_OF_FILE)]
    examples[row] = to_example(parse_example(examples[row]) | features)
    return examples


@pytest.mark.parametrize(
    ("features", "said"),
    [
        ({"ply": Feature("int64_list", [2**62])}, "a record has no ply from 0 to 8"),
        ({"ply": Feature("int64_list", [-5])}, "a record has no ply from 0 to 8"),
        ({"policy": Feature("float_list", [np.inf] * 9)}, "a record has no policy over its legal actions"),
        ({"value": Feature("float_list", [5.0])}, "a record has no value from -1 to 1"),
        ({"root_value": Feature("float_list", [-7.0])}, "a record has no root_value from -1 to 1"),
    ],
)
def test_numbers_out_of_range_are_not_shown(tmp_path, features, said):
    file = write_payloads(tmp_path / "wrong.tfrecord", *changed(GAMES[0], 1, **features))
    text = shown(file, show_records, RecordFilter(record=1))
    assert said in text and "to move" not in text
    assert f"damaged ({said}): training skips it" in shown(file, show_summary)
    with pytest.raises(RecordError, match=f"wrong.tfrecord: {said}"):
        game_files.find("tictactoe", f"{file}:0")


@pytest.mark.parametrize("name", ["tictactoe", "openspiel:tic_tac_toe"])
def test_what_the_rules_forbid_is_not_shown_as_legal(tmp_path, name):
    game = load_game(name)
    state = game.step(game.initial(1), np.array([0]))
    legal = game.legal(state)
    record = GameRecord("0-0", state, np.array([1]), legal / legal.sum(), np.zeros(1, np.float32), 1.0)
    everything = {"legal": Feature("bytes_list", [bytes([1] * 9)])}
    file = write_payloads(tmp_path / "wrong.tfrecord", *changed(encode(game, record), 0, **everything))
    said = "its legal actions are not those of the rules"
    with pytest.raises(RecordError, match=f"wrong.tfrecord holds .*{said}"):
        shown(file, show_summary)
    text = shown(file, show_records, RecordFilter())
    assert said in " ".join(text.split()) and "to move" not in text


def test_ids_and_names_of_files_are_shown_as_they_are(tmp_path):
    """Square brackets are commands of the library that prints."""
    examples = tictactoe_game("[/b]", [4], None)
    file = write_payloads(tmp_path / "[red].tfrecord", *examples[:-1], with_end(examples[-1], END_OF_FILE))
    assert "game     [/b], ply 0" in shown(file, show_records, RecordFilter())
    assert "[red].tfrecord" in shown(file, show_summary)


def test_labels_are_shown_as_they_are(folder, monkeypatch):
    monkeypatch.setattr(type(load_game("tictactoe")), "action_label", lambda _, action: f"[/{action}]:smile:")
    assert "played   [/3]:smile:" in shown(folder / "batch-0000001.tfrecord", show_records, RecordFilter(record=2))
    assert "[/4]:smile: 75.0%  [/0]:smile: 25.0%" in shown(folder, show_summary)


def test_two_players_see_points_where_a_game_counts_any(tmp_path, monkeypatch):
    game = load_game("pig")
    monkeypatch.setattr(type(game), "points", 50.0, raising=False)
    states, policies = np.array([[40, 30, 10, 0, 0]]), np.array([[1, 0]], np.float32)
    record = GameRecord("one", states, np.array([0]), policies, np.array([0.05], np.float32), -1.0, np.array([20]))
    with GameWriter(tmp_path / "data", RecordOptions()) as writer:
        writer.add(encode(game, record))
    text = shown(tmp_path / "data", show_records, RecordFilter(record=0))
    assert "search   +2.5 points for the player to move" in text
    assert "result   -50 points (lost) for the player to move" in text
