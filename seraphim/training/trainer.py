"""Training from one generation to the next: the champion, trained on the newest games, becomes the new champion.

Connects networks, training, records and storage.
"""

import contextlib
import dataclasses
import functools
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seraphim.errors import ModelError, SeraphimError, SettingsError
from seraphim.evaluation.gate import Verdict, judge
from seraphim.game import Game
from seraphim.inference import Runtime, SavedNetwork, load_network
from seraphim.network import architectures, saved_model
from seraphim.options import TrainingPrecision
from seraphim.players.choose import Choose
from seraphim.players.model import Model
from seraphim.records.index import total_positions
from seraphim.records.window import WindowReader, WindowReport
from seraphim.search.expansion import check_offers
from seraphim.selfplay.games import check_options
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.tracking.tensorboard import Log, ScalarLog
from seraphim.training import fit
from seraphim.training.averaging import averaged
from seraphim.training.targets import to_targets, valued_by_turns, with_returns

# A snapshot's metrics.
_PASSED = "gate_passed"
_GENERATED = "generated_positions"  # that existed when it was trained


@dataclass(frozen=True)
class Generation:
    """The result of training a model once."""

    snapshot: Snapshot  # the new champion, if it passed the gate
    verdict: Verdict  # the decision of the gate
    window: WindowReport  # the game data that was read
    generated: int  # positions in all game data so far, approximately
    losses: fit.Losses  # means over the steps
    steps: int  # batches trained on
    precision: TrainingPrecision  # of the arithmetic
    training_seconds: float  # time in `fit`
    gate_seconds: float  # time of the gate's match
    seconds: float  # time from reading the game data to promoting the snapshot
    clipped: float = 0.0  # share of the positions whose target was beyond what the network can say; see `to_targets`

    def __str__(self) -> str:
        """Return a report, skipped files first, each on a line."""
        lines = [f"skipped {path}, which is {reason}" for path, reason in self.window.damaged]
        lines.append(
            f"trained {self.steps:,} steps on the newest {self.window.positions:,} of {self.generated:,} positions "
            f"({self.window.games:,} games in {self.window.files} files): loss {self.losses.total:.4f}, "
            f"policy {self.losses.policy:.4f}, value {self.losses.value:.4f}; "
            f"{self.steps / self.training_seconds:,.0f} steps/s in {self.precision}, {self.seconds:.1f} s in total"
        )
        if self.clipped:
            lines.append(f"the values of {self.clipped:.1%} of the positions are beyond the game's value_scale")
        if self.verdict.result:
            lines.append(f"{self.snapshot.name} {self.verdict}")
        if self.verdict.passed:
            lines.append(f"champion {self.snapshot.name}")
        return "\n".join(lines)


def bootstrap(folder: ModelFolder, game: Game, settings: Settings, seed: int) -> Snapshot:
    """Create a model with random weights, whose snapshot becomes the champion.

    If the program is killed before the end, the same call starts over.

    Raises:
        ModelError: the model exists, or games of an earlier one do; or another program is creating it.
        SettingsError: the network does not fit the game, or it cannot be played with these options.
    """
    folder.check_new()  # before TensorFlow is imported
    if any(not path.name.endswith(".lock") for path in folder.game_data.glob("*")):
        raise ModelError(
            f"{folder.game_data} holds games of an earlier model of this name, from which the new one would learn: "
            "choose another name, or remove that folder"
        )
    check_offers(game, settings.search)
    check_options(game, settings.self_play_search, settings.self_play)
    model = architectures.build(game, settings.network, seed)
    fit.prepare(model, settings.training)
    with folder.learner(), folder.lock():
        folder.create(settings)
        return folder.publish(0, lambda path: saved_model.save_snapshot(model, path), promote=lambda: True)


def retrain(
    folder: ModelFolder, game: Game, settings: Settings, seed: int, quiet: bool = False, log: Log | None = None
) -> Generation:
    """Train the champion once; see `Trainer`.

    Raises:
        SeraphimError: as `Trainer` does.
        ModelError: another program is training the model.
    """
    folder.champion()  # fails before anything is written if there is no model
    with folder.learner():
        return Trainer(folder, game, settings, seed, quiet, log).retrain()


class Trainer:
    """Trains a model repeatedly and keeps it in memory in between; the caller must hold the folder's `learner` lock.

    The same seed, champion and game data give the same snapshots, however often the program is stopped. On the same
    games, two trainings of N steps give what one of 2N gives, bit for bit in float32: weights, optimizer, statistics.
    """

    def __init__(
        self,
        folder: ModelFolder,
        game: Game,
        settings: Settings,
        seed: int,
        quiet: bool = False,
        log: Log | None = None,
        runtime: Runtime = "auto",
    ) -> None:
        """Find the snapshot to train; TensorFlow is imported when it is first used.

        `quiet` hides the progress bar; `log` receives the figures, by default as TensorBoard's files;
        `runtime` runs the networks in the gate's match.

        Raises:
            ModelError: there is no such model, or it has no champion.
            SettingsError: the options of the network or the optimizer differ from those the model was created with.
        """
        folder.champion()  # fails before anything is written if there is none
        folder.recover()
        self._runtime = runtime
        self.spared = ""  # a snapshot that pruning leaves, besides the newest
        self.latest = folder.champion()
        newest = folder.snapshots()[-1]
        if newest.metrics().get(_PASSED) == 0.0:  # training continues from a snapshot that the gate rejected
            self.latest = newest
        _check_fixed_options(folder, settings)
        self._folder = folder
        self._game = game
        self._settings = settings
        self._seed = seed
        self._quiet = quiet
        self.log: Log = log or ScalarLog(folder.path / "logs" / "train")
        self._reader = WindowReader(folder.game_data, game)
        self._model: Any = None
        self._loading = threading.Lock()

    def retrain(self, metrics: Mapping[str, float] | None = None) -> Generation:
        """Train on the newest game data, publish the snapshot, promote it if it passes the gate, and prune old ones.

        `metrics` are kept with the snapshot, beside the figures of the training.

        Raises:
            ModelError: the champion is damaged, or made for another game; or training diverged.
            RecordError: there is no game data, all of it is damaged, or it is of another game.
        """
        started = time.perf_counter()
        options, data = self._settings.training, self._folder.game_data
        generated = total_positions(data)
        positions, window = self._reader.read(fit.window_size(generated, options))
        positions = with_returns(self._game, positions, options.td_lambda)
        new, read = self._count_new(generated), len(positions.ends)
        if self._settings.self_play_search.by_turns:
            positions = valued_by_turns(self._game, positions)
            new = round(new * len(positions.ends) / read)
        positions, clipped = to_targets(self._game, positions)
        if options.average_positions:
            positions = averaged(positions)
        model = self.model
        steps = options.steps or fit.count_steps(new, options)
        training_started = time.perf_counter()
        losses = self._training.train(positions, steps, self.log, self._quiet)
        training_seconds = time.perf_counter() - training_started
        if not math.isfinite(losses.total):
            raise ModelError(
                f"training diverged: the loss is {losses.total}; no snapshot was published: lower learning_rate from "
                f"{options.learning_rate:g}"
            )
        figures = {"training/window": window.positions, "training/clipped": clipped}
        self.log.write(fit.current_step(model), figures)
        snapshot, verdict, gate_seconds = self._publish(
            {
                "loss": losses.total,
                "policy_loss": losses.policy,
                "value_loss": losses.value,
                "window_positions": window.positions,
                "window_newest_file": window.newest,
                _GENERATED: generated,
                **(metrics or {}),
            }
        )
        return Generation(
            snapshot=snapshot,
            verdict=verdict,
            window=window,
            generated=generated,
            losses=losses,
            steps=steps,
            precision=self._training.precision,
            training_seconds=training_seconds,
            gate_seconds=gate_seconds,
            seconds=time.perf_counter() - started,
            clipped=clipped,
        )

    @property
    def model(self) -> Any:
        """Return the Keras model, loaded from the latest snapshot at the first call."""
        with self._loading:
            if self._model is None:
                model = load_network(self.latest.path, self._game)
                fit.prepare(model, self._settings.training)
                self._model = model
            return self._model

    def preload(self) -> None:
        """Start loading the model in the background; an error is raised where the model is used.

        No program ends before it is loaded: TensorFlow would crash.
        """

        def load() -> None:
            with contextlib.suppress(SeraphimError):
                _ = self.model

        threading.Thread(target=load).start()

    @functools.cached_property
    def _training(self) -> fit.TrainingSteps:
        game, options = self._game, self._settings.training
        return fit.TrainingSteps(
            self.model, fit.Batches(game.observation_shape, game.symmetries(), options, self._seed)
        )

    def _count_new(self, generated: int) -> int:
        # Positions that the latest snapshot was not trained on. Without any, training goes over the window once more.
        new = generated - self.latest.metrics().get(_GENERATED, 0)  # negative if games were removed
        return min(int(new) if new > 0 else generated, fit.window_size(generated, self._settings.training))

    def _publish(self, metrics: dict[str, float]) -> tuple[Snapshot, Verdict, float]:
        # Returns the snapshot, the gate's verdict, and the seconds that it took.
        step = fit.current_step(self.model)
        judged: list[tuple[Verdict, float]] = []

        def write(path: Path) -> None:
            # A snapshot appears together with its verdict: if the program is killed before, it is trained again.
            saved_model.save_snapshot(self.model, path)
            started = time.perf_counter()
            verdict = self._judge(path, step)
            judged.append((verdict, time.perf_counter() - started))
            if verdict.result:
                metrics[_PASSED] = float(verdict.passed)
                metrics["gate_score"] = verdict.result.score

        self.latest = self._folder.publish(step, write, metrics, promote=lambda: judged[0][0].passed)
        self._folder.prune(self._settings.training.max_snapshots, self.spared)
        return self.latest, *judged[0]

    def _judge(self, candidate: Path, step: int) -> Verdict:
        options = self._settings.gate
        if options.gate == "off":
            return Verdict(passed=True, result=None)

        def player(snapshot: Path) -> Choose:
            model = Model(self._game, SavedNetwork(snapshot, self._runtime), settings=self._settings)
            return model.player(inferences=model.inferences((options.gate_games + 1) // 2))

        return judge(self._game, player(candidate), player(self._folder.champion().path), options, step)


def _check_fixed_options(folder: ModelFolder, settings: Settings) -> None:
    # A snapshot holds the network, and the optimizer with its state.
    made, wanted = (
        dataclasses.asdict(options.network)
        | {"optimizer": options.training.optimizer, "average_decay": options.training.average_decay and "above 0"}
        for options in (folder.settings(), settings)
    )
    differences = [f"{name} {made[name]}, not {wanted[name]}" for name in made if made[name] != wanted[name]]
    if differences:
        raise SettingsError(
            f"model {folder.name!r} was made with {', '.join(differences)}: leave that flag out, "
            "or make another model with seraphim train --init"
        )
