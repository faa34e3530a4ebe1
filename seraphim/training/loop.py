"""The whole cycle: the champion plays, is trained on its games, and is checked against solved positions; and again.

Every step is on disk before the next begins, so the same call goes on where an interrupted one stopped.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from seraphim.errors import SettingsError
from seraphim.evaluation.error_rates import search_positions
from seraphim.evaluation.mistakes import Evaluation, evaluate
from seraphim.evaluation.players import raw_player
from seraphim.game import Array, load_game
from seraphim.game.features import PositionSet
from seraphim.game.solved import load_position_sets
from seraphim.inference import Runtime, load_inference
from seraphim.machine import count_cores
from seraphim.selfplay.cluster.pool import open_pool
from seraphim.selfplay.generate import generate_games
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.tracking.tensorboard import Log
from seraphim.training.curve import CURVE, LearningCurve
from seraphim.training.progress import LAP, Lap
from seraphim.training.timing import Pace, pace_of
from seraphim.training.trainer import Trainer

Goal = Literal["search", "network", "none"]

_MOST_CHECKED = 5000  # positions after every generation
_READOUTS = 100  # of a search that is checked, at most


@dataclass(frozen=True)
class Stop:
    """When learning ends: at whatever comes first."""

    goal: Goal = "network"
    """No mistake of the `search`, of 100 readouts at most, in any solved position that is checked, or none of the
    `network` alone either; or `none`."""
    generations: int | None = None
    """Trainings."""
    hours: float | None = None
    """Hours since the call; a generation that has begun is finished."""


@dataclass(frozen=True)
class Learnt:
    """How learning ended."""

    champion: Snapshot
    evaluation: Evaluation | None  # of the champion; None where the game has no solved positions
    generations: int
    seconds: float
    interrupted: bool
    pace: Pace
    """Where the time of these generations went."""


def learn(
    folder: ModelFolder,
    settings: Settings,
    seed: int,
    stop: Stop,
    runtime: Runtime = "auto",
    num_workers: int = 0,
    announce: Callable[[str], None] = print,
    quiet: bool = False,
    log: Log | None = None,
    cluster: str | None = None,
) -> Learnt:
    """Generate games, train, check, and repeat until `stop` says so, or Ctrl-C.

    Args:
        folder: of a model that has a champion.
        settings: of the model, and what flags put in their place.
        seed: the same seed, settings and number of workers or any other give the same models.
        stop: when to end.
        runtime: what runs the network.
        num_workers: worker processes; 0 is one for each processor core.
        announce: takes each line of the report.
        quiet: show no progress bars.
        log: takes the figures; by default TensorBoard's files in the model's folder.
        cluster: the address of a Ray cluster, or `auto`, for workers on all its machines; None has them here only.

    Raises:
        SeraphimError: as `generate_games` and `Trainer` do.
        ModelError: another program trains the model.
        SettingsError: a generation has more games than training can draw from.
    """
    _check_generation(settings.self_play.games_per_generation, 1, settings)  # a game has at least one position
    folder.champion()  # that there is no model is told before anything is made
    with folder.learner():
        return _learn(folder, settings, seed, stop, runtime, num_workers, announce, quiet, log, cluster)


def _learn(
    folder: ModelFolder,
    settings: Settings,
    seed: int,
    stop: Stop,
    runtime: Runtime,
    num_workers: int,
    announce: Callable[[str], None],
    quiet: bool,
    log: Log | None,
    cluster: str | None,
) -> Learnt:
    started = time.perf_counter()
    lap = Lap(LearningCurve(folder.path / CURVE), folder.path / LAP)
    check = _Check(folder, settings, runtime)
    trainer = Trainer(folder, load_game(settings.game), settings, seed, quiet, log)
    generations, interrupted, pace = 0, False, Pace()
    of_champion: Evaluation | None = None
    with lap, open_pool(settings, runtime, num_workers, cluster, announce) as pool:
        trainer.preload()
        if _is_unchecked(lap, trainer):
            check.finish(trainer.latest, lap, trainer.log, announce)
        while True:
            stream = _stream(seed, trainer)
            generated = generate_games(
                pool,
                folder,
                settings,
                stream,
                settings.self_play.games_per_generation,
                _mute if generations else announce,
                trainer.log,
            )
            lap.count_evaluations(generated.work.evaluations)
            interrupted = generated.interrupted
            if interrupted:
                break
            lap.count_games(stream, generated.games + generated.earlier_games)
            if generated.games:  # how long they are is known now; they are kept
                _check_generation(
                    settings.self_play.games_per_generation, generated.positions / generated.games, settings
                )
            generation = trainer.retrain()
            generations += 1
            announce(f"generation {generations}, {time.perf_counter() - started:.0f} s: {generated}")
            announce(f"  trained {generation}")
            checking = time.perf_counter()
            evaluation = check.finish(generation.snapshot, lap, trainer.log, announce)
            if generation.verdict.passed:
                of_champion = evaluation
            of_generation = pace_of(generated, generation, time.perf_counter() - checking)
            announce(f"  {of_generation}")
            trainer.log.write(generation.snapshot.step, of_generation.figures())
            pace += of_generation
            if _reached(stop, of_champion, generations, (time.perf_counter() - started) / 3600):
                break
    return Learnt(folder.champion(), of_champion, generations, time.perf_counter() - started, interrupted, pace)


def _check_generation(games: int, positions_of_a_game: float, settings: Settings) -> None:
    window = settings.training.max_window
    if games * positions_of_a_game > window:
        raise SettingsError(
            f"a generation of {games:,} games has at least {games * positions_of_a_game:,.0f} positions, but training "
            f"draws from the newest {window:,} at most: lower games_per_generation to "
            f"{window / positions_of_a_game:,.0f} or less, or raise max_window"
        )


def _mute(_: str) -> None:
    pass


def _sample(position_sets: list[PositionSet]) -> list[PositionSet]:
    # All positions, or where that would take long, the first ones of each set.
    if sum(len(each.states) for each in position_sets) <= _MOST_CHECKED:
        return position_sets
    most = _MOST_CHECKED // 4 // len(position_sets)
    return [PositionSet(each.name, each.states[:most], each.action_values[:most]) for each in position_sets]


class _Check:
    # How good a snapshot is, by solved positions.
    def __init__(self, folder: ModelFolder, settings: Settings, runtime: Runtime) -> None:
        self._folder = folder
        self._settings = settings
        self._runtime = runtime
        self._game = load_game(settings.game)
        self._position_sets = _sample(load_position_sets(settings.game))

    def finish(self, snapshot: Snapshot, lap: Lap, log: Log, announce: Callable[[str], None]) -> Evaluation | None:
        # Checks a new snapshot, tells the figures to everybody, and so finishes the lap.
        figures: dict[str, float] = {}
        evaluation = self._evaluate(snapshot) if self._position_sets else None
        if evaluation:
            announce(f"  checked {evaluation}")
            figures = evaluation.to_dict()
            log.write(snapshot.step, figures)
            self._folder.annotate(snapshot, figures)
        lap.finish(snapshot.step, figures)
        return evaluation

    def _evaluate(self, snapshot: Snapshot) -> Evaluation:
        inferences = [load_inference(snapshot.path, self._game, self._runtime) for _ in range(count_cores())]
        options = replace(self._settings.search, readouts=min(self._settings.search.readouts, _READOUTS))

        def searched(states: Array) -> Array:
            return search_positions(self._game, inferences, options, states).best

        return evaluate(self._game, self._position_sets, searched, raw_player(self._game, inferences[0]))


def _stream(seed: int, trainer: Trainer) -> str:
    # The name of the luck of the games that come before the next training.
    return f"{seed}-{trainer.latest.step}"


def _is_unchecked(lap: Lap, trainer: Trainer) -> bool:
    # Whether a program was killed after a training and before the check: the games before that training are counted.
    return bool(lap.done.stream) and int(lap.done.stream.rpartition("-")[2]) < trainer.latest.step


def _reached(stop: Stop, evaluation: Evaluation | None, generations: int, hours: float) -> bool:
    if stop.generations is not None and generations >= stop.generations:
        return True
    if stop.hours is not None and hours >= stop.hours:
        return True
    if evaluation is None or stop.goal == "none" or not evaluation.perfect:
        return False
    return stop.goal == "search" or not any(one.raw for one in evaluation.sets)
