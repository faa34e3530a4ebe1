"""Players by name, all against all, and the standing tournament."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import programs
import pytest

from seraphim.errors import GameError, ModelError, SeraphimError, SettingsError
from seraphim.evaluation.match import MatchResult, Tally
from seraphim.evaluation.match_csv import RESULTS, Conditions, read_matches, write_matches
from seraphim.evaluation.ratings import Match
from seraphim.evaluation.tournament import Tournament
from seraphim.inference import Runtime
from seraphim.network.saved_model import LITERT
from seraphim.players.roster import Entrant, Roster, all_snapshots
from seraphim.storage.models import ModelFolder, Snapshot
from tictactoe.game import GAME

FEW = Conditions(games=6, readouts=5)


def roster_of(root: Path, game: str | None, conditions: Conditions, runtime: Runtime = "auto") -> Roster:
    return Roster(root, game, conditions.games, conditions.readouts, conditions.seed, runtime)


def names(entrants: list[Entrant]) -> list[str]:
    return [entrant.name for entrant in entrants]


def another_snapshot(folder: ModelFolder, step: int) -> Snapshot:
    """The champion's network once more, as if it had been trained."""
    source = folder.champion().path

    def copy(path: Path) -> None:
        for file in source.rglob("*"):
            if file.is_file() and file.name != "snapshot.json":
                target = path / file.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(file.read_bytes())

    return folder.publish(step, copy)


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    "name", ["random", "minimax:2", "mcts:5", "solver", "solver:0.5", "fresh", "fresh:raw", "fresh/champion"]
)
def test_every_kind_of_player_is_found_and_plays(root: Path, name: str) -> None:
    (entrant,) = roster_of(root, "tictactoe", FEW).entrants([name])
    states = GAME.initial(3)
    assert GAME.legal(states)[range(3), entrant.load()(states)].all()


def test_snapshots_of_a_model_are_found_by_name_and_all_together(root: Path, folder: ModelFolder) -> None:
    first, second = folder.champion(), another_snapshot(folder, 8)
    roster = roster_of(root, None, FEW)
    assert names(roster.entrants(["fresh/all"])) == [f"fresh/{first.name}", f"fresh/{second.name}"]
    assert names(roster.entrants([f"fresh/{second.name}"])) == [f"fresh/{second.name}"]
    assert names(roster.entrants(["fresh/all:raw"])) == [f"fresh/{first.name}:raw", f"fresh/{second.name}:raw"]
    assert names(roster.entrants(["fresh/champion", "fresh/all", "random"])) == [
        f"fresh/{first.name}",
        f"fresh/{second.name}",
        "random",
    ]


def test_the_models_determine_the_game(root: Path) -> None:
    assert roster_of(root, None, FEW).game_of(["random", "fresh"]) == "tictactoe"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "nobody",
            "'nobody' is not a player: .*nobody does not exist; expected random, greedy, minimax:DEPTH, mcts:READOUTS",
        ),
        ("../evil", "'../evil' is not a player: expected random"),
        ("minimax", "'minimax' is not a player: expected random"),
        ("minimax:deep", "'minimax:deep' is not a player"),
        ("mcts:0", "'mcts:0' is not a player"),
        ("mcts:٤", "'mcts:٤' is not a player"),
        ("mcts:1/2", "'mcts:1/2' is not a player"),
        ("mcts:-5", "'mcts:-5' is not a player"),
        ("random:3", "'random:3' is not a player"),
        ("solver:fast", "'solver:fast' is not a player"),
        ("fresh:fast", "'fresh:fast' is not a player: expected fresh, or fresh:raw without search"),
        ("fresh/00000077-20200101T000000Z", "model 'fresh' has no snapshot '00000077-20200101T000000Z'"),
    ],
)
def test_an_unknown_name_is_an_error(root: Path, name: str, message: str) -> None:
    with pytest.raises(SeraphimError, match=message):
        roster_of(root, "tictactoe", FEW).entrants([name])


def test_players_of_two_games_are_refused(root: Path) -> None:
    with pytest.raises(
        SettingsError, match="players must share a game, but --game is for connectfour and fresh for tictactoe"
    ):
        roster_of(root, "connectfour", FEW).entrants(["fresh"])


def test_without_a_model_the_game_must_be_given(root: Path) -> None:
    with pytest.raises(SettingsError, match="which game\\? No model is among the players: give --game as well"):
        roster_of(root, None, FEW).entrants(["random", "minimax:2"])


def test_a_game_without_solver_is_refused(root: Path) -> None:
    with pytest.raises(GameError, match="games has no solver"):
        roster_of(root, "games", FEW).entrants(["solver"])


def test_the_readouts_of_a_model_can_be_set(root: Path) -> None:
    # With one readout the search plays the action of the highest prior.
    few, raw = roster_of(root, None, Conditions(readouts=1)).entrants(["fresh", "fresh:raw"])
    many = roster_of(root, None, Conditions(readouts=50)).entrants(["fresh"])[0]
    states = GAME.initial(1)
    assert few.load()(states) == raw.load()(states)
    assert many.load()(states).shape == (1,)


@pytest.mark.parametrize(
    ("name", "all_of_it"),
    [
        ("fresh", "fresh/all"),
        ("fresh:raw", "fresh/all:raw"),
        ("fresh/champion", "fresh/champion"),
        ("random", "random"),
        ("minimax:2", "minimax:2"),
    ],
)
def test_a_model_is_expanded_to_all_of_its_snapshots(name: str, all_of_it: str) -> None:
    assert all_snapshots(name) == all_of_it


# ---------------------------------------------------------------- all against all


def field_of(*players: str) -> list[Entrant]:
    return roster_of(Path(), "tictactoe", FEW).entrants(players)


def test_all_pairs_meet_once() -> None:
    tournament = Tournament(GAME, FEW)
    played = list(tournament.play_all(field_of("random", "minimax:1", "minimax:2", "solver")))
    assert len({frozenset(match[:2]) for match in played}) == len(played) == 6
    assert played == tournament.matches
    assert all(match.result.games == 6 for match in played)


def test_the_same_seed_plays_the_same_matches_and_another_one_others() -> None:
    def played(seed: int) -> list[Match]:
        conditions = Conditions(games=30, seed=seed)
        return list(Tournament(GAME, conditions).play_all(roster_of(Path(), "tictactoe", conditions).entrants(WEAK)))

    assert played(1) == played(1)
    assert played(1) != played(2)


WEAK = ["random", "minimax:1"]


def test_a_new_player_meets_its_neighbor_first() -> None:
    tournament = Tournament(GAME, FEW)
    list(tournament.play_all(field_of("random", "minimax:1", "minimax:2")))
    pair = tournament.next_pair(field_of("random", "minimax:1", "minimax:2", "minimax:3"))
    assert pair and names(list(pair)) == ["minimax:2", "minimax:3"]


# ---------------------------------------------------------------- the standing tournament


def standing(root: Path, folder: ModelFolder, conditions: Conditions = FEW) -> tuple[Tournament, Callable]:
    roster = roster_of(root, None, conditions)
    tournament = Tournament(GAME, conditions, folder)
    return tournament, tournament.play_on(lambda: roster.entrants(["fresh/all", "random"])).__next__


def test_snapshots_are_ranked_as_they_appear(root: Path, folder: ModelFolder) -> None:
    first = folder.champion().name
    _, step = standing(root, folder)
    match = step()
    assert (match.first, match.second) == (f"fresh/{first}", "random")
    assert step() is None
    assert step() is None
    second = another_snapshot(folder, 8).name
    assert {step()[:2], step()[:2]} == {(f"fresh/{first}", f"fresh/{second}"), (f"fresh/{second}", "random")}
    assert step() is None


def test_a_restart_continues_and_repeats_no_match(root: Path, folder: ModelFolder) -> None:
    another_snapshot(folder, 8)
    before, step = standing(root, folder)
    played = [step(), step()]
    after, step = standing(root, folder)
    assert after.matches == before.matches == played
    last = step()
    assert last[:2] not in {match[:2] for match in played}
    assert step() is None
    assert len(read_matches(folder.path / RESULTS, FEW)) == 3


def test_matches_of_other_conditions_are_kept_but_do_not_count(root: Path, folder: ModelFolder) -> None:
    _, step = standing(root, folder)
    first = step()
    other = Conditions(games=4, readouts=5)
    tournament, step = standing(root, folder, other)
    assert tournament.matches == []
    step()
    assert read_matches(folder.path / RESULTS, FEW) == [first]
    assert len(read_matches(folder.path / RESULTS, other)) == 1


def change_search(folder: ModelFolder, **options: float | str) -> None:
    """Write other options of the search into a model's settings."""
    file = folder.path / "settings.json"
    settings = json.loads(file.read_text())
    settings["search"] |= options
    file.write_text(json.dumps(settings))


def test_the_conditions_cover_all_that_decides_how_the_models_play(root: Path, folder: ModelFolder) -> None:
    def conditions(readouts: int | None = 5, runtime: Runtime = "auto", others: tuple[str, ...] = ()) -> str:
        asked = Conditions(readouts=readouts)
        return str(replace(asked, play=roster_of(root, None, asked, runtime).fingerprint(["fresh/all", *others])))

    before, own, settings = conditions(), conditions(None), folder.settings()
    assert before == conditions() == conditions(others=("random", "mcts:10"))
    assert len({before, own, conditions(6), conditions(runtime="tensorflow")}) == 4
    change_search(folder, readouts=settings.search.readouts + 1)
    assert conditions() == before, "these readouts decide nothing where others are given"
    assert conditions(None) != own
    for changed in ({"cpuct": 3.0}, {"root": "gumbel"}, {"leaf": "playout"}):
        change_search(folder, **changed)
        assert conditions() != before


def test_matches_by_other_search_options_or_of_an_older_file_are_kept_but_do_not_count(
    root: Path, folder: ModelFolder
) -> None:
    file = folder.path / RESULTS
    name = f"fresh/{folder.champion().name}"
    old = Match(name, "random", MatchResult((Tally(2, 0, 0), Tally(0, 0, 2)), (0, 0, 2, 0, 0), 4))
    write_matches(file, [old], FEW_TO_RANK)  # as files were until conditions had a hash
    before = to_rank(root)
    assert f"{name} - random: +" in rank(root, until="random   ")
    change_search(folder, cpuct=3.0)
    assert f"{name} - random: +" in rank(root, until="random   ")
    assert read_matches(file, FEW_TO_RANK) == [old]
    assert [len(read_matches(file, each)) for each in (before, to_rank(root))] == [1, 1]


def test_a_snapshot_that_is_deleted_before_it_is_loaded_is_skipped(root: Path, folder: ModelFolder) -> None:
    roster = roster_of(root, None, FEW)
    second = another_snapshot(folder, 8)
    asked = []

    def entrants() -> list[Entrant]:
        found = roster.entrants(["random", f"fresh/{folder.champion().name}", "fresh/all"])
        if not asked:  # listed for the first time, and gone before it is loaded
            second.path.rename(root / "gone")
            found = [entrant for entrant in found if second.name in entrant.name or entrant.name == "random"]
        asked.append(None)
        return found

    match = next(Tournament(GAME, FEW, folder).play_on(entrants))
    assert (match.first, match.second) == ("random", f"fresh/{folder.champion().name}")


def test_a_damaged_snapshot_is_an_error(root: Path, folder: ModelFolder) -> None:
    for name in ("saved_model.pb", LITERT):  # whichever runtime plays
        file = folder.champion().path / name
        file.write_bytes(bytes(file.stat().st_size))
    _, step = standing(root, folder)
    with pytest.raises(ModelError, match="is damaged"):
        step()


# ---------------------------------------------------------------- the program


def arena(root: Path, *arguments: str) -> list[str]:
    return [sys.executable, "bin/arena.py", *arguments]


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SERAPHIM_DATA": str(root)}
    return programs.run(arena(root, *arguments), env=environment, timeout=120)


def test_the_program_plays_games_for_one_player(root: Path) -> None:
    done = run(root, "random", "greedy", "solver", "--game=twenty48:2x2", "--games=30")
    assert done.returncode == 0, done.stderr
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [
        *("random", "greedy", "solver", ""),
        *("random - greedy", "random - solver", "greedy - solver"),
    ]
    refused = run(root, "random", "greedy", "--game=twenty48:2x2", "--forever", "--csv=x.csv")
    assert refused.returncode == 1
    assert refused.stderr.endswith("--csv, --forever changes nothing here: twenty48:2x2 is for one player\n")


def test_the_program_prints_matches_and_ratings_and_writes_them(root: Path, tmp_path: Path) -> None:
    plot, table = tmp_path / "ratings.svg", tmp_path / "matches.csv"
    done = run(root, "fresh", "fresh:raw", "random", "--games=10", f"--plot={plot}", f"--csv={table}")
    assert done.returncode == 0, done.stderr
    assert "fresh - fresh:raw: +" in done.stdout
    assert "distinct games" in done.stdout
    rated = [
        line.split()[1] for line in done.stdout.splitlines() if line.startswith("  ") and line.split()[0].isdecimal()
    ]
    assert sorted(rated) == ["fresh", "fresh:raw", "random"]
    assert len(table.read_text().splitlines()) == 1 + 3
    assert "fresh:raw" in plot.read_text()


def test_too_few_openings_are_reported(root: Path) -> None:
    done = run(root, "random", "minimax:1", "--game=tictactoe", "--opening_plies=1")
    assert "only 10 distinct openings; raise --opening_plies" in done.stdout
    assert "of 20 games distinct" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "which players? Try: seraphim arena NAME random minimax:4"),
        (("fresh",), "a match needs two players, but there is only fresh"),
        (("fresh", "nobody"), "'nobody' is not a player: "),
        (("random", "minimax:2"), "which game? No model is among the players: give --game as well"),
        (("random", "solver", "--game=games9000"), "there is no game 'games9000'"),
        (("fresh", "random", "--plot=ratings.txt"), "a plot must end with .png, .svg or .pdf, not 'ratings.txt'"),
        (("~no-such-user/x", "random", "--game=tictactoe"), "'~no-such-user/x' is not a player: expected "),
        (("random", "--game=tictactoe", "--forever"), "a standing tournament ranks the snapshots of a model: name one"),
    ],
)
def test_the_program_refuses_in_one_line(root: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run(root, *arguments)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if line]
    assert message in line


FEW_TO_RANK = Conditions(games=4, readouts=5)


def to_rank(root: Path) -> Conditions:
    """The conditions of `rank`."""
    return replace(FEW_TO_RANK, play=roster_of(root, None, FEW_TO_RANK).fingerprint(["fresh", "random"]))


def rank(root: Path, until: str) -> str:
    """What a standing tournament prints, Ctrl-C being pressed after a line with that text."""
    process = subprocess.Popen(
        arena(root, "fresh", "random", "--forever", "--games=4", "--readouts=5"),
        env={**os.environ, "SERAPHIM_DATA": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        lines = []
        for line in process.stdout:
            lines.append(line)
            if until in line:
                process.send_signal(signal.SIGINT)
                break
        lines += process.stdout.readlines()
    assert process.returncode == 0, lines
    return "".join(lines)


def test_the_standing_tournament_stops_on_ctrl_c_and_continues(root: Path, folder: ModelFolder) -> None:
    first = folder.champion().name
    assert f"fresh/{first} - random: +" in rank(root, until="random   ")
    second = another_snapshot(folder, 8).name
    more = rank(root, until="random   ")
    assert f"fresh/{first} - random: +" not in more
    assert f"fresh/{second} - random: +" in more
    assert "interrupted" in more
    assert len(read_matches(folder.path / RESULTS, to_rank(root))) == 3


def test_removed_snapshots_that_met_none_of_the_present_players_are_not_ranked(root: Path, folder: ModelFolder) -> None:
    removed = [f"fresh/0000000{step}-20250101T000000Z" for step in (1, 2)]
    result = MatchResult((Tally(2, 0, 0), Tally(0, 0, 2)), (0, 0, 2, 0, 0), 4)
    write_matches(folder.path / RESULTS, [Match(*removed, result)], to_rank(root))
    ranked = rank(root, until="random   ").rpartition(" player ")[2]
    assert f" fresh/{folder.champion().name} " in ranked
    assert not any(name in ranked for name in removed)
    assert len(read_matches(folder.path / RESULTS, to_rank(root))) == 2
