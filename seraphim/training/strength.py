"""The strength of a model while it learns: short matches of its champions against fixed players, on the Elo scale."""

import time
from dataclasses import replace

import numpy as np

from seraphim.evaluation.match import default_plies, make_openings, play_match
from seraphim.evaluation.match_csv import Conditions, read_matches, write_matches
from seraphim.evaluation.ratings import ANCHOR, Match, Rating, rate
from seraphim.game import Array, load_game
from seraphim.inference import Runtime
from seraphim.players.choose import Choose
from seraphim.players.roster import Roster
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder, Snapshot

MATCHES = "strength.csv"
"""The file of these matches in a model's folder."""

SHARE = 0.03  # of the time that matches may take
ANCHORS = (ANCHOR, "mcts:10", "mcts:100", "mcts:1000", "mcts:10000")  # weakest first; random is rated 0
_CONDITIONS = Conditions(games=40, readouts=100)
_MASTERED = 0.9  # share of points against an anchor from which the next one is met as well
_SLICE_SECONDS = 0.1  # of play between two looks at the time, about
_FIRST_SECONDS = 2.0  # that the first matches are expected to take, and the match of the two weakest anchors
_NEXT_FACTOR = 10  # of the time that the match of the next two anchors takes, which search ten times as much


class Strength:
    """Matches of a model's champions; they go on from those in the model's folder."""

    def __init__(self, folder: ModelFolder, settings: Settings, runtime: Runtime) -> None:
        """Read the matches of earlier runs.

        Raises:
            FileError: their file is damaged.
        """
        self._folder = folder
        self._file = folder.path / MATCHES
        self._game = load_game(settings.game)
        root, games, readouts = folder.path.parents[1], _CONDITIONS.games, _CONDITIONS.readouts
        self._roster = Roster(root, settings.game, games, readouts, runtime=runtime, trust=folder.trust)
        self._openings = make_openings(self._game, _CONDITIONS.games // 2, default_plies(self._game))
        self._conditions = replace(_CONDITIONS, play=self._roster.fingerprint([folder.name]))
        self._matches = read_matches(self._file, self._conditions)
        champions = [match.first for match in self._matches if match.first not in ANCHORS]
        self._rated = champions[-1] if champions else ""  # the champion that was rated last
        met = {match.first for match in self._matches} | {match.second for match in self._matches}
        self._anchor = max((place for place, name in enumerate(ANCHORS) if name in met), default=0)
        self._mastered = False  # the strongest anchor that was met, while there was no time for the next one
        self._spent, self._expected = 0.0, _FIRST_SECONDS
        self._introduction = _FIRST_SECONDS * _NEXT_FACTOR**self._anchor  # seconds expected for the next two anchors

    @property
    def rated(self) -> str:
        """The name of the snapshot that was rated last, the next one's opponent; "" if none was."""
        return self._rated.rpartition("/")[2]

    def measure(self, champion: Snapshot, elapsed: float) -> Rating | None:
        """Return the rating of a champion; None if it was rated before, or if its matches take too much time.

        It meets the strongest of ANCHORS that was met so far, and the champion that was rated before it, if that is
        still stored. Once it makes nearly all points against the anchor, and there is time, the next one is introduced;
        until then, half of the time is saved for it. A match that exceeds the time ends without a result; the next try
        waits until there is twice as much.

        Args:
            champion: a snapshot of the model.
            elapsed: seconds since the run began, of which SHARE may be spent on matches.

        Raises:
            ModelError: the champion is damaged.
        """
        name = f"{self._folder.name}/{champion.name}"
        share = SHARE / 2 if self._mastered else SHARE
        if name == self._rated or self._spent + self._expected > share * elapsed:
            return None
        before = self._spent
        score = self._play(name, ANCHORS[self._anchor], share * elapsed)
        if score is None:
            self._expected = 2 * (self._spent - before)
            return None
        self._expected = self._spent - before  # for the next champion
        if self._rated in [f"{self._folder.name}/{each.name}" for each in self._folder.snapshots()]:
            finished = self._play(name, self._rated, share * elapsed) is not None
            self._expected = (1 if finished else 2) * (self._spent - before)
        self._rated = name
        self._mastered = score > _MASTERED and self._anchor + 1 < len(ANCHORS)
        if self._mastered and self._spent + self._introduction <= SHARE * elapsed:
            self._introduce_next(SHARE * elapsed)
        return next(each for each in rate(self._matches) if each.name == name)

    def _introduce_next(self, most: float) -> None:
        # The next anchor meets the one before it.
        before = self._spent
        finished = self._play(ANCHORS[self._anchor + 1], ANCHORS[self._anchor], most) is not None
        seconds = self._spent - before
        self._introduction = (_NEXT_FACTOR if finished else 2) * seconds
        if finished:
            self._anchor, self._mastered = self._anchor + 1, False
            self._expected += seconds  # against the next champion it searches as much

    def _play(self, first: str, second: str, most: float) -> float | None:
        # Returns the first player's share of points; None if all matches would take more than `most` seconds.
        started = time.perf_counter()
        deadline = started + most - self._spent
        try:
            one, other = (_until(deadline, each.load()) for each in self._roster.entrants([first, second]))
            match = Match(first, second, play_match(self._game, one, other, self._openings))
            self._matches.append(match)
            write_matches(self._file, [match], self._conditions, keep=True)
            return match.result.score
        except _OutOfTimeError:
            return None
        finally:
            self._spent += time.perf_counter() - started


class _OutOfTimeError(Exception):
    pass


def _until(deadline: float, player: Choose) -> Choose:
    # The same player, which raises an _OutOfTimeError from that moment on: it chooses in as many positions at a time as
    # take about a slice of time, at first in one.
    size = 1

    def choose(states: Array) -> Array:
        nonlocal size
        chosen: list[Array] = []
        rest = states
        while len(rest):
            started = time.perf_counter()
            if started > deadline:
                raise _OutOfTimeError
            chosen.append(player(rest[:size]))
            rest = rest[size:]
            if time.perf_counter() - started < _SLICE_SECONDS / 2:
                size *= 2
        return np.concatenate(chosen)

    return choose
