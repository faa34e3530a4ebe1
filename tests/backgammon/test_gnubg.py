"""GNU Backgammon: the plays that it allows, and as a player."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from backgammon import rules
from backgammon.game import GAME, Backgammon
from backgammon.rules import BAR, CHECKERS, OFF, ROLL
from seraphim.errors import GameError, NotInstalledError, PlayerError, SettingsError
from seraphim.evaluation.match import make_openings, play_match
from seraphim.game import CHANCE, Array, load_game, random_actions
from seraphim.game.exhaustive import solve
from seraphim.game.notation import followers
from seraphim.players.choose import random_player
from seraphim.players.external import gnubg
from seraphim.players.external.gnubg import gnubg_player
from seraphim.players.external.player import EnginePlayer
from seraphim.players.roster import Roster

# Runs inside GNU Backgammon: for each line of two dice and both players' checkers, all plays with their equities.
SCRIPT = """
import gnubg, json, sys
for setting in ("player 0 human", "player 1 human", "cube use off", "jacoby off", "automatic game off",
                "evaluation chequer evaluation cubeful off", "evaluation chequer evaluation plies 0"):
    gnubg.command("set " + setting)
gnubg.command("set display off")
gnubg.command("new game")
with open({answers!r}, "w") as answers:
    for line in open({positions!r}):
        numbers = [int(word) for word in line.split()]
        own, other = numbers[2:27], numbers[27:]
        board = [own[24]] + [own[point] - other[23 - point] for point in range(24)] + [other[24]]
        gnubg.command("set turn 1")
        gnubg.command("set board simple " + " ".join(map(str, board)))
        gnubg.command("set dice {{}} {{}}".format(*numbers[:2]))
        assert [list(side) for side in gnubg.board()] == [other, own]
        found = gnubg.hint(9999)
        print(json.dumps([(each["move"], each["equity"]) for each in found["hint"]] if found else []), file=answers)
"""
Sides = tuple[tuple[int, ...], tuple[int, ...]]
"""The checkers of the player who made a play and of the other, in slots 1 to 25."""


@pytest.fixture(autouse=True)
def _is_installed() -> None:
    if not shutil.which("gnubg", path=os.pathsep.join([os.environ["PATH"], gnubg.GAMES_FOLDER])):
        pytest.skip("not installed: apt install gnubg")


@pytest.fixture
def player() -> Iterator[EnginePlayer]:
    found = gnubg_player(GAME, "0")
    yield found
    found.close()


def rolled_games(number: int) -> list[list[int]]:
    """The moves of random games up to a roll that a player is to play, at all ages."""
    random, found = np.random.default_rng(3), list[list[int]]()
    while len(found) < number:
        states, moves, plies = GAME.initial(number), np.empty((number, 0), np.int64), random.integers(300, size=number)
        while len(states):
            rolled = GAME.to_play(states) == CHANCE
            actions = random_actions(followers(GAME, states), random)
            states, moves = GAME.step(states, actions), np.column_stack([moves, actions])
            over = GAME.outcome(states)[0]
            chosen = rolled & ~over & (moves.shape[1] > plies)
            found += moves[chosen].tolist()
            states, moves, plies = (each[~over & ~chosen] for each in (states, moves, plies))
    return found[:number]


def after(moves: list[int]) -> Array:
    states = GAME.initial(1)
    for action in moves:
        states = GAME.step(states, np.array([action]))
    return states[0]


def sides(state: Array, player: int) -> Sides:
    own, other = (GAME.checkers(state, seat)[1:].tolist() for seat in (player, 1 - player))
    return tuple(own), tuple(other)


def played(before: Sides, text: str) -> Sides:
    """The checkers after a play such as `bar/22*/20 6/4(2)`."""
    own, other = ([0, *side] for side in before)
    for word in text.split():
        path, _, times = word.rstrip(")").partition("(")
        stops = [BAR if each == "bar" else OFF if each == "off" else int(each) for each in re.findall(r"\w+", path)]
        for _ in range(int(times or 1)):
            own[stops[0]] -= 1
            own[stops[-1]] += 1
        for hit in re.findall(r"(\d+)\*", path):
            other[BAR - int(hit)] -= 1
            other[BAR] += 1
    return tuple(own[1:]), tuple(other[1:])


def plays(state: Array) -> set[Sides]:
    """The checkers after each way to finish the turn."""
    player, states, found = int(GAME.to_play(state[None])[0]), state[None], set[Sides]()
    while len(states):
        rows, actions = np.nonzero(GAME.legal(states))
        states = np.unique(GAME.step(states[rows], actions), axis=0)
        over = (GAME.to_play(states) != player) | GAME.outcome(states)[0]
        found |= {sides(each, player) for each in states[over]}
        states = states[~over]
    return found


def all_plays(states: list[Array], folder: Path) -> list[dict[Sides, float]]:
    """The plays that GNU Backgammon finds in some positions, with their equities without looking ahead."""
    positions, answers, script = folder / "positions", folder / "answers", folder / "script.py"
    lines = []
    for state in states:
        turn, (own, other) = int(state[4]), sides(state, int(GAME.to_play(state[None])[0]))
        lines.append([turn >> 1 & 7, turn >> 4 & 7, *own, *other])
    positions.write_text("".join(f"{' '.join(map(str, line))}\n" for line in lines))
    script.write_text(SCRIPT.format(positions=str(positions), answers=str(answers)))
    program = shutil.which("gnubg", path=os.pathsep.join([os.environ["PATH"], gnubg.GAMES_FOLDER]))
    command = [str(program), "--tty", "--quiet", "--no-rc", "--prefsdir", str(folder), "--python", str(script)]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=600)
    found = [json.loads(line) for line in answers.read_text().splitlines()]
    before = [(tuple(line[2:27]), tuple(line[27:])) for line in lines]
    return [{played(start, text): equity for text, equity in each} for start, each in zip(before, found, strict=True)]


@pytest.mark.parametrize("number", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_the_plays_are_those_of_gnu_backgammon_and_it_plays_the_best(
    number: int, tmp_path: Path, player: EnginePlayer
) -> None:
    games = rolled_games(number)
    states = [after(moves) for moves in games]
    for moves, state, found in zip(games, states, all_plays(states, tmp_path), strict=True):
        mover = int(GAME.to_play(state[None])[0])
        assert plays(state) == ({*found} or {sides(state, mover)}), GAME.render(state)
        if len(moves) % 10 or not found:
            continue
        assert found[sides(after(finished(player, moves)), mover)] == max(
            found.values()
        )  # by points, so that gammons count


def finished(player: EnginePlayer, moves: list[int]) -> list[int]:
    """The moves up to the end of the turn, which a player finishes."""
    state, moves = after(moves), moves.copy()
    mover = GAME.to_play(state[None])[0]
    while GAME.to_play(state[None])[0] == mover and not GAME.outcome(state[None])[0][0]:
        moves.append(int(player.choose([moves])[0]))
        state = GAME.step(state[None], np.array(moves[-1:]))[0]
    return moves


def test_a_roll_that_others_began_is_finished_as_it_would_have_been(player: EnginePlayer) -> None:
    other, checked = gnubg_player(GAME, "0"), 0  # which sees nothing but turns that were begun
    for moves in rolled_games(40):
        whole = finished(player, moves)
        if len(whole) > len(moves) + 1:
            again = finished(other, whole[: len(moves) + 1])
            assert np.array_equal(after(again), after(whole))
            checked += 1
    assert checked > 20
    other.close()


def test_it_plays_games_to_the_end_from_both_seats(tmp_path: Path) -> None:
    (entrant,) = Roster(tmp_path, "backgammon", games=2).entrants(["gnubg:0"])
    result = play_match(GAME, entrant.load(), random_player(GAME), make_openings(GAME, 2, 0))
    assert (result.games, result.score, result.cut_off) == (4, 1, 0)
    assert result.points is not None and result.points.value > 1.5  # random play loses gammons


def children() -> set[int]:
    # Not as the lists of our threads: what a thread started passes to another one when it ends.
    found = set[int]()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if int(process.joinpath("stat").read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found.add(int(process.name))
    return found


def test_it_is_started_again_when_it_dies() -> None:
    others = children()
    player = gnubg_player(GAME, "0")
    games = rolled_games(5)
    expected = [int(player.choose([moves])[0]) for moves in games]
    for moves, action in zip(games, expected, strict=True):
        (process,) = children() - others
        os.kill(process, signal.SIGKILL)
        assert player.choose([moves]) == action
    player.close()
    assert not children() - others


@pytest.mark.parametrize("plies", ["", "-1", "5", "01", "0 "])
def test_it_looks_a_few_plies_ahead(plies: str) -> None:
    with pytest.raises(SettingsError, match="expected the plies that it looks ahead, 0 to 4, as in gnubg:2"):
        gnubg_player(GAME, plies)


def test_it_plays_no_other_game() -> None:
    with pytest.raises(PlayerError, match="gnubg plays backgammon, not othello"):
        gnubg_player(load_game("othello"), "0")


class BearOff(Backgammon):
    """Begins with three checkers of each player on the point where most pips are left, and the others borne off."""

    def initial(self, batch: int) -> Array:
        states = np.zeros((1, self.state_words), np.int64)
        for player in (0, 1):
            rules.add(states, 0, player, 6, 3)
            rules.add(states, 0, player, OFF, CHECKERS - 3)
        return np.repeat(states, batch, axis=0)  # player 0 is to roll


def test_exact_values_of_bearing_off_are_those_of_its_tables() -> None:
    solution = solve(BearOff())
    to_roll = np.flatnonzero(GAME.legal(solution.states)[:, ROLL])
    assert len(to_roll) > 8_000
    values = 3 * solution.results[to_roll] * (1 - 2 * GAME.to_play(solution.states[to_roll]))
    with contextlib.closing(gnubg.GnubgProcess(0)) as process:
        equities = [process.equity(GAME.fibs_board(state)) for state in solution.states[to_roll]]
    np.testing.assert_allclose(values, equities, atol=1e-4)  # its table has 16 bits


def test_a_missing_program_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gnubg, "GAMES_FOLDER", "")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(NotInstalledError, match="GNU Backgammon is not installed, as gnubg: install it"):
        gnubg_player(GAME, "0")


def test_a_silent_program_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gnubg, "THINKING_SECONDS", 0.001)
    player = gnubg_player(GAME, "4")
    with pytest.raises(GameError, match="gnubg:4 did not answer in time"):
        player.choose(rolled_games(1))
    player.close()


def test_what_plays_lose_is_told() -> None:
    game, player = load_game("backgammon"), gnubg_player(GAME, "0")
    random, states, moves = np.random.default_rng(0), game.initial(1), list[int]()
    while len(moves) < 60:  # against random play
        if GAME.to_play(states)[0] == 0:
            moves.append(int(player.choose([moves])[0]))
        else:
            moves.append(int(random_actions(followers(GAME, states), random)[0]))
        states = GAME.step(states, np.array(moves[-1:]))
    player.close()
    lost = gnubg.lost_points(GAME, moves, 0)
    by_player = [[points for _, seat, points in lost if seat == each] for each in (0, 1)]
    assert min(map(len, by_player)) > 3
    assert max(by_player[0]) < 1e-5  # as far as it looks
    assert np.mean(by_player[1]) > 0.1
    ahead = gnubg.lost_points(GAME, moves[:24], 1)
    assert [each[:2] for each in ahead] == [each[:2] for each in lost if each[0] < 24][: len(ahead)]
    assert all(GAME.to_play(after(moves[:ply])[None])[0] == seat for ply, seat, _ in lost)
