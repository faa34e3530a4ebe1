"""The checker accepts proofs, and refuses whatever is none: by the definition of a proof, written naively."""

import hashlib
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checker import PROGRAM, check_proof
from games import MOVES_TWICE, NIM

from connectfour.game import ConnectFour
from seraphim.game import Array, Game, PlainGame, PlainRules, Symmetries, load_game
from seraphim.inference import Uniform
from seraphim.proof.certificate import MAGIC, KnownMoves, read_certificate
from seraphim.proof.proving import Limits, prove
from tictactoe.game import GAME as TICTACTOE

ROOT = Path(__file__).parents[2]


def proof_of(name: str, game: Game, out: Path) -> bytes:
    for _ in prove(name, game.initial(1)[0], "result", [Uniform(game)], Limits(60, 8), out, lambda *_: None):
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
    for claim in header["claims"]:
        left = len(unread) - claim["moves"]
        positions = {(): np.array(header["position"])}
        while positions:
            successors: dict[tuple[int, ...], Array] = {}
            for _, state in sorted(positions.items()):
                actions = np.flatnonzero(game.legal(state[None])[0]).tolist()
                if game.to_play(state[None])[0] == claim["player"]:
                    if len(unread) <= left or unread[0] not in actions:
                        return False
                    actions = [unread.pop(0)]
                for action in actions:
                    after = game.step(state[None], np.array([action]))
                    ended, result = game.outcome(after)
                    own = float(result[0]) * (1 - 2 * claim["player"])
                    if ended[0] and not (own > 0 if claim["wins"] else own >= 0):
                        return False
                    if not ended[0]:
                        successors.setdefault(key(game, after, header["symmetric"]), after[0])
            positions = successors
        if len(unread) != left:
            return False
    return True


def key(game: Game, state: Array, symmetric: bool) -> tuple[int, ...]:
    player = int(game.to_play(state)[0])
    if not symmetric:
        return (player, *state[0].tolist())
    seen = game.observe(state).ravel()
    return min((player, *seen[cells].tolist()) for cells in game.symmetries().observations)


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


def test_changes_are_refused_unless_they_are_proofs(draw: bytes) -> None:
    header, moves = opened(draw)
    rng, kept = np.random.default_rng(0), 0
    for _ in range(2_000):
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
                changed_header["position"][rng.integers(2)] ^= int(1 << rng.integers(9))
            case 6:
                changed_header["symmetric"] = not header["symmetric"]
            case _:
                changed[place] = rng.integers(9)
        expected = is_proof(TICTACTOE, changed_header, changed)
        assert accepts(sealed(changed_header, changed)) == expected, (changed_header, changed)
        kept += expected
    assert 0 < kept < 500  # another move that draws, for example, as the last one


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
        ("position", [0]),
        ("position", [1 << 70, 0]),
        ("bits", 9),
        ("claims", []),
        ("claims", [{"player": 2, "wins": True, "moves": 99}]),
        ("claims", [{"player": 0, "wins": True, "moves": -1}]),
        ("claims", [{"player": 0}]),
        ("claims", 3),
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
    header = {"game": "duel", "position": [4, 0, 0], "symmetric": True, "bits": 8}
    forged = [{"player": 0, "wins": True, "moves": 2}]
    assert not accepts(sealed({**header, "claims": forged}, np.zeros(2)))
    found = proof_of("duel", game, tmp_path / "proof")
    assert accepts(found)
    assert {(claim["player"], claim["wins"]) for claim in opened(found)[0]["claims"]} == {(1, True)}


def test_another_state_is_not_taken_for_the_initial_one(draw: bytes) -> None:
    game = load_game("hex:3")
    honest = game.initial(1)[0]
    hidden = honest.copy()
    hidden[0] |= 1 << 50  # which no cell shows
    header, moves = opened(draw)
    for position, start in ((honest, "the initial position"), (hidden, f"the state {hidden.tolist()}")):
        data = sealed({**header, "game": "hex:3", "position": position.tolist()}, moves)
        assert next(check_proof.check(data)).startswith(f"hex:3, from {start}\n")


def test_a_game_that_is_not_asked_for_is_not_imported(draw: bytes) -> None:
    header, moves = opened(draw)
    with pytest.raises(check_proof.RefusedError, match="it is of no_such_game"):
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
    for _ in prove("games", game.initial(1)[0], "first", [Uniform(game)], Limits(60, 8), out, lambda *_: None):
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
    return subprocess.run([sys.executable, PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=ROOT)


def test_the_program(draw: bytes, tmp_path: Path) -> None:
    (tmp_path / "good").write_bytes(draw)
    (tmp_path / "bad").write_bytes(draw[:-1])
    good, bad, other = run(tmp_path / "good"), run(tmp_path / "bad"), run(tmp_path / "good", "--game=connectfour")
    assert (good.returncode, good.stderr) == (0, "")
    assert re.search(r"the first player at least draws: \d+ positions, \d+ moves", good.stdout)
    assert (bad.returncode, other.returncode) == (1, 1)
    assert "its checksum is wrong" in bad.stderr
    assert "it is of tictactoe" in other.stderr
    assert run(tmp_path / "none").returncode == 1


def test_a_proof_is_a_player(draw: bytes, tmp_path: Path) -> None:
    file = tmp_path / "draw"
    file.write_bytes(draw)
    arena = [sys.executable, ROOT / "bin" / "arena.py", f"proof:{file}", "solver", "--game=tictactoe", "--games=10"]
    done = subprocess.run([*arena, "--from_start"], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert "wins 0%, draws 100%, losses 0%: exact" in done.stdout
    lost = subprocess.run(arena, capture_output=True, text=True, cwd=ROOT)
    assert lost.returncode == 1
    assert "its player must play from where the proof begins" in lost.stderr
