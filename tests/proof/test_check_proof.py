"""The checker accepts proofs, and refuses whatever is none: by the definition of a proof, written naively."""

import contextlib
import hashlib
import io
import json
import re
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import programs
import pytest
from games import MOVES_TWICE, NIM

from connectfour.game import ConnectFour
from seraphim.commands import check_proof
from seraphim.errors import GameError, RecordError
from seraphim.game import Array, Game, PlainGame, PlainRules, Symmetries
from seraphim.game.saved_games import Position
from seraphim.proof.certificate import MAGIC, read_certificate
from seraphim.proof.known_moves import KnownMoves
from seraphim.proof.proving import Limits, prove
from seraphim.search.evaluator import Uniform
from tictactoe.game import GAME as TICTACTOE

ROOT = Path(__file__).parents[2]
START = Position(None, [], [])


def proof_of(name: str, game: Game, out: Path) -> bytes:
    for _ in prove(name, START, "result", [Uniform(game)], Limits(60, 8), out, lambda *_: None):
        pass
    return out.read_bytes()


def accepts(data: bytes) -> bool:
    try:
        list(check_proof.check(data))
    except check_proof.RefusedError:
        return False
    return True


def sealed(header: dict[str, Any], moves: Array) -> bytes:
    data = MAGIC + json.dumps(header).encode() + b"\n" + zlib.compress(moves.astype(np.uint8).tobytes())
    return data + hashlib.sha256(data).digest()


def opened(data: bytes) -> tuple[dict[str, Any], Array]:
    header, _, body = data[len(MAGIC) : -32].partition(b"\n")
    return json.loads(header), np.frombuffer(zlib.decompress(body), np.uint8)


def is_proof(game: Game, header: dict[str, Any], moves: Array) -> bool:
    """The definition, a position at a time: games by the moves end as claimed, and use the moves in their order."""
    unread = moves.tolist()
    if sum(claim["moves"] for claim in header["claims"]) != len(unread):
        return False
    for place, action in enumerate(header["start"]):
        state = after(game, header["start"][:place])
        if not 0 <= action < game.num_actions or not game.legal(state)[0, action]:
            return False
    for claim in header["claims"]:
        left = len(unread) - claim["moves"]
        lines = {(): list(header["start"])}  # the moves to each position, by its key
        while lines:
            successors: dict[tuple[int, ...], list[int]] = {}
            for _, line in sorted(lines.items()):
                state = after(game, line)
                actions = np.flatnonzero(game.legal(state)[0]).tolist()
                if not actions:
                    return False
                if game.to_play(state)[0] == claim["player"]:
                    if len(unread) <= left or unread[0] not in actions:
                        return False
                    actions = [unread.pop(0)]
                for action in actions:
                    ended, result = game.outcome(after(game, [*line, action]))
                    own = float(result[0]) * (1 - 2 * claim["player"])
                    if ended[0] and not (own > 0 if claim["wins"] else own >= 0):
                        return False
                    if not ended[0]:
                        successors.setdefault(key(game, [*line, action], header["symmetric"]), [*line, action])
            lines = successors
        if len(unread) != left:
            return False
    return True


def after(game: Game, line: list[int]) -> Array:
    states = game.initial(1)
    for action in line:
        states = game.step(states, np.array([action]))
    return states


def key(game: Game, line: list[int], symmetric: bool) -> tuple[int, ...]:
    """The least words of the states after the same moves under the symmetries that keep the initial position."""
    initial, (orders, turned) = game.observe(game.initial(1)).ravel(), game.symmetries()
    kept = [turn for order, turn in zip(orders, turned, strict=True) if initial[order].tolist() == initial.tolist()]
    states = [after(game, turn[line].tolist()) for turn in (kept if symmetric else turned[:1])]
    return min(tuple(word % 2**64 for word in state[0].tolist()) for state in states)


@pytest.fixture(scope="module")
def draw(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The proofs that neither player wins at tic-tac-toe."""
    return proof_of("tictactoe", TICTACTOE, tmp_path_factory.mktemp("proof") / "draw.proof")


def test_a_proof_is_accepted(draw: bytes, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert is_proof(TICTACTOE, *opened(draw))
    assert accepts(draw)
    lines = list(check_proof.check(draw))
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "the second player at least draws",
        "the first player at least draws",
    ]


def test_a_proof_is_accepted_wherever_its_lines_go(
    draw: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "draw.proof").write_bytes(draw)
    monkeypatch.setattr(check_proof, "GAME", SimpleNamespace(value=None))
    for stream in (
        io.StringIO(),
        io.TextIOWrapper(io.BytesIO(), "ascii"),
        SimpleNamespace(write=len, flush=lambda: None),
    ):
        with contextlib.redirect_stdout(stream):  # type: ignore[type-var]
            assert check_proof.main(["check-proof", str(tmp_path / "draw.proof")]) == 0


@pytest.mark.parametrize("count", [100, pytest.param(2_000, marks=pytest.mark.slow)])
def test_changes_are_refused_unless_they_are_proofs(draw: bytes, count: int) -> None:
    header, moves = opened(draw)
    rng, kept = np.random.default_rng(0), 0
    for _ in range(count):
        changed, changed_header = moves.copy(), json.loads(json.dumps(header))
        place, claim = int(rng.integers(len(moves))), changed_header["claims"][rng.integers(2)]
        match rng.integers(8):
            case 0:
                changed = np.delete(moves, place)
            case 1:
                changed = np.insert(moves, place, rng.integers(9))
                claim["moves"] += 1
            case 2:
                changed = np.delete(moves, place)
                claim["moves"] -= 1
            case 3:
                claim["player"] = 1 - claim["player"]
            case 4:
                claim["wins"] = not claim["wins"]
            case 5:
                changed_header["start"].append(int(rng.integers(10)))
            case 6:
                changed_header["symmetric"] = not header["symmetric"]
            case _:
                changed[place] = rng.integers(9)
        expected = is_proof(TICTACTOE, changed_header, changed)
        assert accepts(sealed(changed_header, changed)) == expected, (changed_header, changed)
        kept += expected
    assert 0 < kept < count / 4  # another move that draws, for example, as the last one


def test_damaged_files_are_refused(draw: bytes) -> None:
    rng = np.random.default_rng(1)
    for length in range(len(draw)):
        assert not accepts(draw[:length])
    for _ in range(8_000):
        damaged = bytearray(draw)
        damaged[rng.integers(len(draw))] ^= int(rng.integers(1, 256))
        assert not accepts(bytes(damaged))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("game", "chess960"),
        ("game", 7),
        ("game", "tictactoe:3"),
        ("start", [9]),
        ("start", [-1]),
        ("start", [0, 0]),
        ("start", [True]),
        ("start", ["b2"]),
        ("start", [1 << 70]),
        ("start", {"0": 0}),
        ("symmetric", 1),
        ("bits", 9),
        ("bits", True),
        ("claims", []),
        ("claims", [{"player": 2, "wins": True, "moves": 99}]),
        ("claims", [{"player": 0, "wins": True, "moves": -1}]),
        ("claims", [{"player": 0}]),
        ("claims", 3),
        ("claims", [{"player": 0, "wins": True, "moves": 0, "position": [0, 512]}]),
        ("position", [0, 512]),
    ],
)
def test_headers_without_sense_are_refused(draw: bytes, key: str, value: object) -> None:
    header, moves = opened(draw)
    assert not accepts(sealed({**header, key: value}, moves))


class Duel(PlainGame):
    """The first player chooses a side, which changes nothing; the second player then wins on the left and loses right.

    The sides are symmetric only to one who cannot tell a 1 from a 2 in the observation.
    """

    name, num_actions, observation_shape, state_words, max_plies = "duel", 2, (2,), 3, 3

    def initial(self) -> tuple[int, ...]:
        return (4, 0, 0)

    def step(self, state: tuple[int, ...], action: int) -> tuple[int, ...]:
        cells, value = [0, 0], max(state[:2])
        cells[action] = 3 if value == 4 else value + 4 if value < 3 else 1 if state[action] else 2
        return (*cells, 1 - state[2])

    def legal(self, state: tuple[int, ...]) -> list[int]:
        return [0, 1] if 3 in state[:2] else [0 if state[0] else 1]

    def to_play(self, state: tuple[int, ...]) -> int:
        return state[2]

    def outcome(self, state: tuple[int, ...]) -> float | None:
        return 1.0 if 5 in state[:2] else -1.0 if 6 in state[:2] else None

    def observe(self, state: tuple[int, ...]) -> Array:
        return np.array(state[:2], np.uint8)

    def symmetries(self) -> Symmetries:
        sides = np.array([[0, 1], [1, 0]], np.int32)
        return Symmetries(sides, sides)


def test_observations_are_compared_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    game = PlainRules(Duel())
    for module in (sys.modules["seraphim.proof.proving"], check_proof):
        monkeypatch.setattr(module, "load_game", lambda _: game)
    header = {"game": "duel", "start": [], "symmetric": True, "bits": 8}
    forged = [{"player": 0, "wins": True, "moves": 2}]
    assert not accepts(sealed({**header, "claims": forged}, np.zeros(2)))
    found = proof_of("duel", game, tmp_path / "proof")
    assert accepts(found)
    assert {(claim["player"], claim["wins"]) for claim in opened(found)[0]["claims"]} == {(1, True)}


def refusal(data: bytes) -> str:
    with pytest.raises(check_proof.RefusedError) as refused:
        list(check_proof.check(data))
    return str(refused.value)


def test_a_proof_begins_where_play_leads(tmp_path: Path) -> None:
    """The claims of a proof after a1 b1 a2 b2 hold nowhere else, and no words of a state stand in for the moves."""
    out, moves = tmp_path / "proof", [0, 1, 3, 4]
    for _ in prove("tictactoe", Position(None, moves, []), "first", [Uniform(TICTACTOE)], Limits(60, 8), out, print):
        pass
    header, content = opened(out.read_bytes())
    assert header["start"] == moves
    assert next(check_proof.check(out.read_bytes())).startswith("tictactoe, after a1 b1 a2 b2\n")
    for start in ([], [0], [0, 1], [0, 1, 3], [0, 1, 3, 6], [0, 1, 4, 3]):
        assert refusal(sealed({**header, "start": start}, content)) in (
            "a move is missing or illegal",
            "a game ends otherwise than it claims",
        )
    assert refusal(sealed({**header, "start": [0, 0]}, content)) == "move 2 of its start is not legal"
    assert refusal(sealed({**header, "start": [*moves, 6]}, content)) == "the game is over where it begins"
    ghost = {**header, "position": [0, 512]}
    assert "must have game, start, symmetric, bits, claims, and nothing else" in refusal(sealed(ghost, content))
    del ghost["start"]
    assert "must have game, start, symmetric, bits, claims, and nothing else" in refusal(sealed(ghost, content))


@pytest.mark.parametrize("player", [0, 1])
@pytest.mark.parametrize("wins", [True, False])
@pytest.mark.parametrize("moves", [[], [0]])
def test_nothing_is_proven_where_the_game_is_over(player: int, wins: bool, moves: list[int], tmp_path: Path) -> None:
    claims = [{"player": player, "wins": wins, "moves": len(moves)}]
    header = {"game": "tictactoe", "start": [0, 3, 1, 4, 2], "symmetric": True, "bits": 8, "claims": claims}
    (tmp_path / "proof").write_bytes(sealed(header, np.array(moves)))
    assert refusal((tmp_path / "proof").read_bytes()) == "the game is over where it begins"
    with pytest.raises(GameError, match="the game is over where it begins"):
        list(read_certificate(tmp_path / "proof").walk(TICTACTOE))


@pytest.mark.parametrize("game", ["pig", "twenty48"])
@pytest.mark.parametrize(("player", "moves"), [(0, [0]), (1, [])])
def test_nothing_is_proven_in_a_game_of_chance(game: str, player: int, moves: list[int]) -> None:
    claims = [{"player": player, "wins": True, "moves": len(moves)}]
    header = {"game": game, "start": [], "symmetric": False, "bits": 8, "claims": claims}
    expected = "a move is missing or illegal" if game == "pig" else "the game is over where it begins"
    assert refusal(sealed(header, np.array(moves))) == expected
    with pytest.raises(GameError, match="which is not played here"):
        list(prove(game, Position(None, [], []), "first", [], Limits(1, 8), None, print))


def test_a_position_without_a_move_in_which_the_game_goes_on_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(PlainGame):
        name, num_actions, observation_shape, state_words, max_plies = "stuck", 1, (1,), 1, 9

        def initial(self) -> tuple[int]:
            return (0,)

        def step(self, state: Any, action: int) -> tuple[int]:
            return (state[0] + 1,)

        def legal(self, state: Any) -> list[int]:
            return [0] if state[0] == 0 else []

        def to_play(self, state: Any) -> int:
            return state[0] % 2

        def outcome(self, state: Any) -> None:
            return None

        def observe(self, state: Any) -> Array:
            return np.zeros(1)

    monkeypatch.setattr(check_proof, "load_game", lambda name: PlainRules(Stuck()))
    claims = [{"player": 0, "wins": True, "moves": 1}]
    header = {"game": "stuck", "start": [], "symmetric": False, "bits": 8, "claims": claims}
    assert refusal(sealed(header, np.array([0]))) == "a move is missing or illegal"


def test_proofs_of_format_1_say_how_to_renew_them(draw: bytes, tmp_path: Path) -> None:
    old = b"seraphim proof 1\n" + draw[len(MAGIC) :]
    assert refusal(old) == "it is of format 1, which does not show that play leads to its position: prove it again"
    (tmp_path / "old").write_bytes(old)
    with pytest.raises(RecordError, match=r"is of format 1.*prove it again \(seraphim prove\)"):
        read_certificate(tmp_path / "old")


@pytest.mark.parametrize("counts", [[1 << 28], [1 << 28, -(1 << 28)]])
def test_moves_are_unpacked_as_they_are_needed(draw: bytes, tmp_path: Path, counts: list[int]) -> None:
    """256 MiB of zeros in a quarter of a megabyte, and claims to match: neither reader takes memory for it."""
    header, _ = opened(draw)
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(1 << 20)) for _ in range(256)) + packer.flush()
    claims = [{"player": 0, "wins": True, "moves": moves} for moves in counts]
    data = MAGIC + json.dumps({**header, "claims": claims}).encode() + b"\n" + packed
    data += hashlib.sha256(data).digest()
    (tmp_path / "bomb").write_bytes(data)
    tracemalloc.start()
    try:
        assert refusal(data) == "it claims more moves than such a file holds, or fewer than none"
        with pytest.raises(RecordError, match="more moves than such a file holds|fewer than no moves"):
            read_certificate(tmp_path / "bomb")
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("rest", [b"\0", zlib.compress(b"\0")])
def test_nothing_follows_the_moves(draw: bytes, tmp_path: Path, rest: bytes) -> None:
    body = draw[:-32] + rest
    (tmp_path / "more").write_bytes(body + hashlib.sha256(body).digest())
    assert refusal((tmp_path / "more").read_bytes()) == "it claims nothing, or has moves that belong to no claim"
    with pytest.raises(GameError, match="moves that belong to no claim"):
        list(read_certificate(tmp_path / "more").walk(TICTACTOE))


def test_what_the_checker_refuses_no_reader_takes(draw: bytes, tmp_path: Path) -> None:
    """The library has a reader and a walk of its own: as strict, for the same changes."""
    header, moves = opened(draw)
    rng, file = np.random.default_rng(2), tmp_path / "proof"
    for _ in range(60):
        changed, claims = moves.copy(), json.loads(json.dumps(header["claims"]))
        changed[rng.integers(len(moves))] = rng.integers(9)
        claims[rng.integers(2)][("player", "moves", "wins")[rng.integers(3)]] = int(rng.integers(2))
        start = rng.permutation(9)[: rng.integers(10)].tolist()
        for change in ({}, {"claims": claims}, {"start": start}, {"symmetric": False}, {"bits": 32}, {"more": 1}):
            file.write_bytes(sealed({**header, **change}, changed if rng.random() < 0.5 else moves))
            try:
                taken = bool(list(read_certificate(file).walk(TICTACTOE)))
            except (GameError, RecordError):
                taken = False
            assert taken == accepts(file.read_bytes()), change


def test_a_game_that_is_not_asked_for_is_not_imported(draw: bytes) -> None:
    header, moves = opened(draw)
    with pytest.raises(check_proof.RefusedError, match="it is of 'no_such_game'"):
        list(check_proof.check(sealed({**header, "game": "no_such_game"}, moves), "tictactoe"))


@pytest.mark.parametrize(
    ("name", "game"),
    [("games", PlainRules(NIM)), ("connectfour:4x4", ConnectFour(4, 4)), ("twice", PlainRules(MOVES_TWICE))],
)
def test_proofs_of_other_games(name: str, game: Game, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("seraphim.proof.proving", "check_proof"):
        target = check_proof if module == "check_proof" else sys.modules[module]
        monkeypatch.setattr(target, "load_game", lambda _: game)
    data = proof_of(name, game, tmp_path / "proof")
    assert accepts(data)
    if name != "connectfour:4x4":
        assert is_proof(game, *opened(data))


def test_known_moves_win_against_every_reply(tmp_path: Path) -> None:
    game = PlainRules(NIM)
    out = tmp_path / "proof"
    for _ in prove("games", START, "first", [Uniform(game)], Limits(60, 8), out, lambda *_: None):
        pass
    known = KnownMoves(game, read_certificate(out))

    def longest(state: Array) -> int:
        ended, results = game.outcome(state[None])
        if ended[0]:
            assert results[0] == 1
            return 0
        (found,) = known.find(state)
        actions = [found.action] if game.to_play(state[None])[0] == 0 else np.flatnonzero(game.legal(state[None])[0])
        plies = 1 + max(longest(game.step(state[None], np.array([action]))[0]) for action in actions)
        assert found.plies == plies
        return plies

    assert longest(game.initial(1)[0]) > 4
    assert known.find(np.array([15, 1])) == []


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return programs.run([sys.executable, "bin/check_proof.py", *map(str, arguments)], cwd=ROOT)


def test_the_program(draw: bytes, tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(draw)
    (tmp_path / "bad").write_bytes(draw[:-1])
    good, bad, other = run(tmp_path / "good"), run(tmp_path / "bad"), run(tmp_path / "good", "--game=connectfour")
    assert (good.returncode, good.stderr) == (0, "")
    assert re.search(r"the first player at least draws: \d+ positions, \d+ moves", good.stdout)
    assert (bad.returncode, other.returncode) == (1, 1)
    assert "its checksum is wrong" in bad.stderr
    assert "it is of 'tictactoe'" in other.stderr
    assert run(tmp_path / "none").returncode == 1


def test_a_proof_is_a_player(draw: bytes, tmp_path: Path) -> None:
    file = tmp_path / "draw"
    file.write_bytes(draw)
    arena = [sys.executable, ROOT / "bin" / "arena.py", f"proof:{file}", "solver", "--game=tictactoe", "--games=10"]
    done = programs.run([*arena, "--from_start"], cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "wins 0%, draws 100%, losses 0%: exact" in done.stdout
    lost = programs.run(arena, cwd=ROOT)
    assert lost.returncode == 1
    assert "its player must play from where the proof begins" in lost.stderr
