"""The whole cycle: the champion plays, is trained on its games, and is checked against solved positions; and again.

Every step is on disk before the next begins, so the same call goes on where an interrupted one stopped.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from seraphim.curve import CURVE, LearningCurve
from seraphim.evaluation import Evaluation, PositionSet, evaluate, load_position_sets
from seraphim.game import Game, load_game
from seraphim.generating import generate_games
from seraphim.inference import Runtime, load_inference
from seraphim.players import MOST_TREES, raw_player, search_player
from seraphim.retraining import Trainer
from seraphim.settings import Settings
from seraphim.store import ModelFolder, Snapshot
from seraphim.workers import WorkerPool

Goal = Literal["search", "network", "none"]

_MOST_CHECKED = 5000  # positions after every generation


@dataclass(frozen=True)
class Stop:
    """When learning ends: at whatever comes first."""

    goal: Goal = "network"
    """No mistake of the `search` in any solved position, or none of the `network` alone either; or `none`."""
    generations: int | None = None
    """Trainings."""
    minutes: float | None = None
    """Minutes since the call; a generation that has begun is finished."""


@dataclass(frozen=True)
class Learnt:
    """How learning ended."""

    champion: Snapshot
    evaluation: Evaluation | None  # of the champion; None where the game has no solved positions
    generations: int
    seconds: float
    interrupted: bool


def learn(
    folder: ModelFolder,
    settings: Settings,
    seed: int,
    stop: Stop,
    runtime: Runtime = "auto",
    num_workers: int = 0,
    announce: Callable[[str], None] = print,
    quiet: bool = False,
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

    Raises:
        SeraphimError: as `generate_games` and `Trainer` do.
    """
    started = time.perf_counter()
    game = load_game(settings.game)
    position_sets = _sample(load_position_sets(settings.game))
    trainer = Trainer(folder, game, settings, seed, quiet)
    generations, interrupted = 0, False
    of_champion: Evaluation | None = None
    curve, lap = LearningCurve(folder.path / CURVE), started
    with WorkerPool(settings, runtime, num_workers) as pool:
        trainer.preload()
        while not interrupted:
            stream = f"{seed}-{trainer.latest.step}"
            generated = generate_games(
                pool,
                folder,
                settings,
                stream,
                settings.self_play.games_per_generation,
                _mute if generations else announce,
            )
            interrupted = generated.interrupted
            if interrupted:
                break
            generation = trainer.retrain()
            generations += 1
            announce(f"generation {generations}, {time.perf_counter() - started:.0f} s: {generated}")
            announce(f"  trained {generation}")
            evaluation = _check(game, position_sets, generation.snapshot, settings, runtime)
            figures = evaluation.to_dict() if evaluation else {}
            if evaluation:
                announce(f"  checked {evaluation}")
                trainer.log.write(generation.snapshot.step, figures)
                folder.annotate(generation.snapshot, figures)
            done = {"games": generated.games, "evaluations": generated.work.evaluations}
            curve.add(generation.snapshot.step, time.perf_counter() - lap, done, figures)
            lap = time.perf_counter()
            if generation.verdict.passed:
                of_champion = evaluation
            if _reached(stop, of_champion, generations, (time.perf_counter() - started) / 60):
                break
    return Learnt(folder.champion(), of_champion, generations, time.perf_counter() - started, interrupted)


def _mute(_: str) -> None:
    pass


def _sample(position_sets: list[PositionSet]) -> list[PositionSet]:
    # All positions, or where that would take long, the first ones of each set.
    if sum(len(each.states) for each in position_sets) <= _MOST_CHECKED:
        return position_sets
    most = _MOST_CHECKED // 4 // len(position_sets)
    return [PositionSet(each.name, each.states[:most], each.action_values[:most]) for each in position_sets]


def _check(
    game: Game, position_sets: list[PositionSet], snapshot: Snapshot, settings: Settings, runtime: Runtime
) -> Evaluation | None:
    if not position_sets:
        return None
    inference = load_inference(snapshot.path, game, runtime, batch=MOST_TREES)
    searched, raw = search_player(game, inference, settings.search), raw_player(game, inference)
    return evaluate(game, position_sets, searched, raw)


def _reached(stop: Stop, evaluation: Evaluation | None, generations: int, minutes: float) -> bool:
    if stop.generations is not None and generations >= stop.generations:
        return True
    if stop.minutes is not None and minutes >= stop.minutes:
        return True
    if evaluation is None or stop.goal == "none" or not evaluation.perfect:
        return False
    return stop.goal == "search" or not any(one.raw for one in evaluation.sets)
