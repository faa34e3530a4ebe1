"""The loop of AlphaZero: the champion plays, is trained on its games, and is checked against solved positions.

Every step is on disk before the next begins, so the same call continues where an interrupted one stopped.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import indent

from seraphim.errors import SettingsError
from seraphim.evaluation.check import RAW, SEARCHED, CheckResult, evaluate
from seraphim.evaluation.position_lists import first_positions
from seraphim.game import Game, load_game
from seraphim.game.features import is_combinatorial
from seraphim.game.loading import PositionSet
from seraphim.game.solved import load_position_sets
from seraphim.inference import Runtime
from seraphim.inference.interface import LARGEST_BATCH
from seraphim.machine import count_cores, say
from seraphim.options import Count, NotNegative, Seed, check, check_optional
from seraphim.players.model import open_model
from seraphim.selfplay.cluster.pool import open_pool
from seraphim.selfplay.generate import generate_games
from seraphim.settings import Goal, Settings
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.tracking.tensorboard import Log
from seraphim.training.curve import CURVE, add_to_curve, read_curve
from seraphim.training.strength import Strength
from seraphim.training.timing import Timing, time_generation
from seraphim.training.trainer import Trainer

# Positions of each set checked after every generation, where the sets are not a whole game; more for the mean of what
# moves lose.
_SAMPLE, _SAMPLE_OF_REGRET = 64, 1000
_MAX_READOUTS = 100  # of a search that is checked

# Metrics of a snapshot: what its generation took before the check, in case the program is killed before that.
_SECONDS, _GAMES, _EVALUATIONS = "generation_seconds", "generation_games", "generation_evaluations"


@dataclass(frozen=True)
class Run:
    """How `learn` runs; it ends when the goal or a limit is reached."""

    goal: Goal = "network"
    """`search`: a search of at most 100 readouts makes no mistake in the solved positions that are checked; `network`:
    neither does the network alone; `none`."""
    generations: int | None = None  # limit on trainings
    hours: float | None = None  # limit on the time since the call; a generation that has begun is finished
    seed: int = 0  # the same seed and settings give the same models, whatever the number of workers
    runtime: Runtime = "auto"  # what runs the network
    num_workers: int = 0  # worker processes; 0 is one for each processor core
    cluster: str | None = None  # address of a Ray cluster, or `auto`, for workers on its machines; None: local workers
    quiet: bool = False  # show no progress bars

    def __post_init__(self) -> None:
        """Raise a SettingsError if a value is of the wrong type or out of range."""
        check(Goal, goal=self.goal)
        check(Seed, seed=self.seed)
        check_optional(Count, generations=self.generations)
        check_optional(NotNegative, hours=self.hours)


@dataclass(frozen=True)
class LearnResult:
    """How learning ended."""

    champion: Snapshot
    evaluation: CheckResult | None  # of the champion; None where the game has no solved positions
    generations: int
    seconds: float
    interrupted: bool
    timing: Timing  # where the time of these generations went


def learn(
    folder: ModelFolder, settings: Settings, run: Run, announce: Callable[[str], None] = say, log: Log | None = None
) -> LearnResult:
    """Generate games, train, check, and repeat until `run` says so, or Ctrl-C.

    `announce` receives each line of the report; `log` receives the figures, by default as TensorBoard's files.

    Raises:
        SeraphimError: as `generate_games` and `Trainer` do.
        ModelError: another program is training the model.
        SettingsError: a generation has more games than training can draw from.
    """
    started = time.perf_counter()
    games = settings.self_play.games_per_generation
    _check_generation(games, 1, settings)  # a game has at least one position
    folder.champion()  # fails before anything is written if there is no model
    generations, timing, evaluation = 0, Timing(), None
    with folder.learner():
        trainer = Trainer(folder, load_game(settings.game), settings, run.seed, run.quiet, log, run.runtime)
        check = _Check(folder, settings, run.runtime, trainer.log, announce)
        with open_pool(settings, run.runtime, run.num_workers, run.cluster, announce) as pool:
            trainer.preload()
            check.resume(trainer.latest)
            while True:
                trainer.spared = check.rated
                stream = f"{run.seed}-{trainer.latest.step}"  # names the random streams of this generation's games
                said = announce if generations == 0 else lambda _: None
                generated = generate_games(pool, folder, settings, stream, games, said, trainer.log)
                if generated.interrupted:
                    break
                if generated.games:  # their length is known now; they are kept
                    _check_generation(games, generated.positions / generated.games, settings)
                total_games = generated.games + generated.earlier_games
                generation = trainer.retrain(
                    {_SECONDS: check.elapsed, _GAMES: total_games, _EVALUATIONS: generated.work.evaluations}
                )
                generations += 1
                announce(f"generation {generations}, {time.perf_counter() - started:.0f} s: {generated}")
                announce(indent(str(generation), "  "))
                check_started = time.perf_counter()
                checked = check.finish(generation.snapshot)
                if generation.verdict.passed:
                    evaluation = checked
                of_generation = time_generation(generated, generation, time.perf_counter() - check_started)
                announce(f"  {of_generation}")
                trainer.log.write(generation.snapshot.step, of_generation.figures())
                timing += of_generation
                if _reached(run, evaluation, generations, (time.perf_counter() - started) / 3600):
                    break
        champion = folder.champion()
        if not generated.interrupted:
            evaluation = check.complete(champion, evaluation)
    seconds = time.perf_counter() - started
    return LearnResult(champion, evaluation, generations, seconds, generated.interrupted, timing)


def _check_generation(games: int, positions_per_game: float, settings: Settings) -> None:
    window = settings.training.max_window
    if games * positions_per_game > window:
        fewer = int(window / positions_per_game)
        remedy = f"lower games_per_generation to {fewer:,} or less, or raise" if fewer else "raise"
        raise SettingsError(
            f"a generation of {games:,} games has at least {games * positions_per_game:,.0f} positions, but training "
            f"draws from at most the newest {window:,}: {remedy} max_window"
        )


class _Check:
    # Checks each new snapshot against solved positions, and adds its generation to the learning curve.
    def __init__(
        self, folder: ModelFolder, settings: Settings, runtime: Runtime, log: Log, announce: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._runtime = runtime
        self._log = log
        self._announce = announce
        self._game = load_game(settings.game)
        self._position_sets = load_position_sets(settings.game)
        self._sample = _sample(self._game, self._position_sets)
        self._curve = folder.path / CURVE
        self._strength = Strength(folder, settings, runtime) if is_combinatorial(self._game) else None
        self._run_started = self._started = time.perf_counter()  # the latter of the current generation

    @property
    def rated(self) -> str:
        return self._strength.rated if self._strength else ""

    @property
    def elapsed(self) -> float:
        return round(time.perf_counter() - self._started, 3)

    def resume(self, snapshot: Snapshot) -> None:
        # Finishes the generation of a snapshot if the program was killed after its training.
        metrics, rows = snapshot.metrics(), read_curve(self._curve)
        if metrics.keys() >= {_GAMES, _SECONDS, _EVALUATIONS} and (not rows or rows[-1]["step"] < snapshot.step):
            self._started -= metrics[_SECONDS]
            self.finish(snapshot)

    def finish(self, snapshot: Snapshot) -> CheckResult | None:
        figures: dict[str, float] = {}
        evaluation = self._evaluate(snapshot, self._sample) if self._sample else None
        if evaluation:
            self._announce(f"  checked {evaluation}")
            figures = evaluation.to_dict()
            self._log.write(snapshot.step, figures)
            self._folder.annotate(snapshot, figures)
        rating = None
        if self._strength:
            rating = self._strength.measure(self._folder.champion(), time.perf_counter() - self._run_started)
        if rating:
            self._announce(f"  {rating.elo:+.0f} Elo [{rating.low:+.0f}, {rating.high:+.0f}], where random play is 0")
            strength = {"strength/elo": rating.elo, "strength/low": rating.low, "strength/high": rating.high}
            self._log.write(snapshot.step, strength)
            figures = {**figures, **strength}
        metrics = snapshot.metrics()
        done = {"seconds": self.elapsed, "games": metrics[_GAMES], "evaluations": metrics[_EVALUATIONS]}
        add_to_curve(self._curve, snapshot.step, done, figures)
        self._started = time.perf_counter()
        return evaluation

    def complete(self, champion: Snapshot, evaluation: CheckResult | None) -> CheckResult | None:
        # Checks the champion in all positions, if `evaluation` is of the sample.
        if evaluation and self._sample is not self._position_sets:
            evaluation = self._evaluate(champion, self._position_sets)
            self._announce(f"{champion.name} checked in all positions: {evaluation}")
            self._folder.annotate(champion, evaluation.to_dict())
        return evaluation

    def _evaluate(self, snapshot: Snapshot, position_sets: list[PositionSet]) -> CheckResult:
        model = open_model(self._folder, snapshot, self._settings, self._runtime)
        inferences = model.inferences(LARGEST_BATCH, count_cores())
        search = self._settings.search
        readouts = None if search.by_turns else min(search.readouts, _MAX_READOUTS)
        searched = model.player(readouts, inferences)
        return evaluate(self._game, position_sets, searched, model.player(0, inferences))


def _sample(game: Game, position_sets: list[PositionSet]) -> list[PositionSet]:
    # The first positions of each set, or all if one set has the initial position of two players without chance: a game
    # that is known completely.
    if not is_combinatorial(game):
        return [first_positions(each, _SAMPLE_OF_REGRET) for each in position_sets]
    start = game.initial(1)
    if any((each.states == start).all(axis=1).any() for each in position_sets):
        return position_sets
    return [first_positions(each, _SAMPLE) for each in position_sets]


def _reached(run: Run, evaluation: CheckResult | None, generations: int, hours: float) -> bool:
    if run.generations is not None and generations >= run.generations:
        return True
    if run.hours is not None and hours >= run.hours:
        return True
    if evaluation is None or run.goal == "none" or evaluation.mistakes(SEARCHED) or any(evaluation.losses or ()):
        return False
    return run.goal == "search" or not evaluation.mistakes(RAW)
