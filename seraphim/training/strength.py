"""The strength of a model while it learns: short matches of its champions against fixed players, on the Elo scale."""

import time

from seraphim.evaluation.match import default_plies, make_openings, play_match
from seraphim.evaluation.match_csv import Conditions, read_matches, write_matches
from seraphim.evaluation.ratings import ANCHOR, Match, Rating, rate
from seraphim.evaluation.tournament import Roster
from seraphim.game import load_game
from seraphim.inference import Runtime
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder, Snapshot

MATCHES = "strength.csv"
"""The file of these matches in a model's folder."""

SHARE = 0.03  # of the time that matches may take
ANCHORS = (ANCHOR, "mcts:10", "mcts:100", "mcts:1000", "mcts:10000")  # weakest first; random is rated 0
_CONDITIONS = Conditions(games=40, readouts=100)
_MASTERED = 0.9  # share of points against an anchor from which the next one is met as well
_FIRST_SECONDS = 2.0  # that the first matches are expected to take, and the match of the two weakest anchors
_NEXT_FACTOR = 10  # of the time that the match of the next two anchors takes, which search ten times as much


class Strength:
    """Matches of a model's champions; they go on from those in the model's folder."""

    def __init__(self, folder: ModelFolder, settings: Settings, runtime: Runtime) -> None:
        """Read the matches of earlier runs.

        Raises:
            SettingsError: their file is damaged.
        """
        self._folder = folder
        self._file = folder.path / MATCHES
        self._game = load_game(settings.game)
        self._roster = Roster(folder.path.parents[1], settings.game, _CONDITIONS, runtime, folder.trust)
        self._openings = make_openings(self._game, _CONDITIONS.games // 2, default_plies(self._game))
        self._conditions = self._roster.conditions_of([folder.name])
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
        """Return the rating of a champion; None if it was rated before, or if its matches would take too much time.

        It meets the strongest of ANCHORS that was met so far, and the champion that was rated before it, if that is
        still stored. Once it makes nearly all points against the anchor, and there is time, the next one is introduced;
        until then, half of the time is saved for it.

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
        started = time.perf_counter()
        score = self._play(name, ANCHORS[self._anchor])
        if self._rated in [f"{self._folder.name}/{each.name}" for each in self._folder.snapshots()]:
            self._play(name, self._rated)
        self._rated = name
        seconds = time.perf_counter() - started
        self._expected = seconds  # for the next champion
        self._mastered = score > _MASTERED and self._anchor + 1 < len(ANCHORS)
        if self._mastered and self._spent + seconds + self._introduction <= SHARE * elapsed:
            self._anchor, self._mastered = self._anchor + 1, False
            self._play(ANCHORS[self._anchor], ANCHORS[self._anchor - 1])
            self._expected = time.perf_counter() - started  # against the next champion it searches as much
            self._introduction = _NEXT_FACTOR * (self._expected - seconds)
        self._spent += time.perf_counter() - started
        return next(each for each in rate(self._matches) if each.name == name)

    def _play(self, first: str, second: str) -> float:
        # Returns the first player's share of points.
        one, other = (entrant.load() for entrant in self._roster.entrants([first, second]))
        match = Match(first, second, play_match(self._game, one, other, self._openings))
        self._matches.append(match)
        write_matches(self._file, [match], self._conditions, keep=True)
        return match.result.score
