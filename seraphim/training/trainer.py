"""From one generation of a model to the next: the champion, trained on the newest games, becomes the new champion.

Joins networks, training, records and the store; decides nothing about any of them.
"""

import contextlib
import dataclasses
import functools
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seraphim.errors import SeraphimError, SettingsError
from seraphim.evaluation.gate import Verdict, judge
from seraphim.evaluation.players import Choose, search_player
from seraphim.game import Game
from seraphim.inference import load_inference, load_network
from seraphim.network import architectures, saved_model
from seraphim.records.index import total_positions
from seraphim.records.window import WindowReport, read_window
from seraphim.settings import Settings
from seraphim.storage.models import ModelFolder, Snapshot
from seraphim.tracking.tensorboard import Log, ScalarLog
from seraphim.training import fit
from seraphim.training.averaging import averaged
from seraphim.training.fit import Losses

_PASSED = "gate_passed"  # the figure of a snapshot that tells what the gate said

# Steps of an mlp in one execution: a step takes it about as long as Keras's bookkeeping between executions.
_MLP_EXECUTION = 32


@dataclass(frozen=True)
class Generation:
    """What came of training a model once."""

    snapshot: Snapshot
    """The new champion, if it passed the gate."""
    verdict: Verdict
    """What the gate said."""
    window: WindowReport
    """What was read of the game data."""
    generated: int
    """Positions in all game data so far, about."""
    losses: Losses
    """Means over the steps."""
    steps: int
    """Batches trained on."""
    training_seconds: float
    """Time in `fit`."""
    gate_seconds: float
    """Time in the gate's match."""
    seconds: float
    """Time from reading the game data to promoting the snapshot."""

    def __str__(self) -> str:
        """Return what a person wants to know, damaged files first, each on a line."""
        damaged = [f"skipped {path}, which is {reason}" for path, reason in self.window.damaged]
        summary = (
            f"{self.steps:,} steps on the newest {self.window.positions:,} of {self.generated:,} positions "
            f"({self.window.games:,} games in {self.window.files} files): loss {self.losses.total:.4f}, "
            f"policy {self.losses.policy:.4f}, value {self.losses.value:.4f}; "
            f"{self.steps / self.training_seconds:,.0f} steps/s, {self.seconds:.1f} s in all"
        )
        match = [f"{self.snapshot.name} {self.verdict}"] if self.verdict.result else []
        return "\n".join(
            [*damaged, summary, *match, *([f"champion {self.snapshot.name}"] if self.verdict.passed else [])]
        )


def bootstrap(folder: ModelFolder, game: Game, settings: Settings, seed: int) -> Snapshot:
    """Make a new model with random weights, and make that snapshot the champion.

    If the program is killed before the end, the same call starts again.

    Raises:
        ModelError: the model exists, or another program makes it.
        SettingsError: the network does not fit the game.
    """
    folder.check_new()  # at once, not when TensorFlow is there
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
        ModelError: another program trains the model.
    """
    folder.champion()  # that there is no model is told before anything is made
    with folder.learner():
        return Trainer(folder, game, settings, seed, quiet, log).retrain()


class Trainer:
    """A model that is trained again and again, and stays in memory meanwhile; its owner is the folder's `learner`.

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
    ) -> None:
        """Look at the champion; TensorFlow is not imported before it is needed.

        Args:
            folder: of the model.
            game: of the model.
            settings: of the model, and what a flag put in their place.
            seed: of the batches.
            quiet: show no progress bar.
            log: takes the figures; by default TensorBoard's files in the model's folder.

        Raises:
            ModelError: there is no such model, or it has no champion.
            SettingsError: the options of the network or the optimizer are not those that the model was made with.
        """
        folder.champion()  # that there is none is told before anything is made
        folder.recover()
        self.latest = folder.champion()
        newest = folder.snapshots()[-1]
        if newest.metrics().get(_PASSED) == 0.0:  # training goes on from a snapshot that the gate stopped
            self.latest = newest
        _check_network(folder, settings)
        self._folder = folder
        self._game = game
        self._settings = settings
        self._seed = seed
        self._quiet = quiet
        self.log: Log = log or ScalarLog(folder.path / "logs" / "train")
        self._gate_seconds = 0.0  # of the last training
        self._model: Any = None
        self._loading = threading.Lock()

    def retrain(self) -> Generation:
        """Train on the newest game data, publish the snapshot, promote it if the gate lets it, and remove old ones.

        Raises:
            ModelError: the champion cannot be trained, because it is damaged or made for another game.
            RecordError: there is no game data, all of it is damaged, or it is of another game.
        """
        started = time.perf_counter()
        options = self._settings.training
        data = self._folder.game_data
        generated = total_positions(data)
        positions, window = read_window(data, self._game, fit.window_size(generated, options))
        if options.average_positions:
            positions = averaged(positions)
        model, log = self.model, self.log  # loaded by now
        training_started = time.perf_counter()
        losses = fit.train(model, positions, self._batches, log, self._quiet)
        training_seconds = time.perf_counter() - training_started
        log.write(fit.current_step(model), {"training/window": window.positions})
        snapshot, verdict = self._publish(losses, window)
        seconds = time.perf_counter() - started
        times = training_seconds, self._gate_seconds, seconds
        return Generation(snapshot, verdict, window, generated, losses, options.steps, *times)

    @property
    def model(self) -> Any:
        """Return the Keras model; at first the latest snapshot's."""
        with self._loading:
            if self._model is None:
                model = load_network(self.latest.path, self._game)
                at_a_time = _MLP_EXECUTION if self._settings.network.kind == "mlp" else 1
                fit.prepare(model, self._settings.training, at_a_time)
                self._model = model
            return self._model

    def preload(self) -> None:
        """Begin to load the model in the background; what is wrong with it is raised where it is used."""

        def load() -> None:
            with contextlib.suppress(SeraphimError):
                _ = self.model

        threading.Thread(target=load, daemon=True).start()

    @functools.cached_property
    def _batches(self) -> fit.Batches:
        options = self._settings.training
        return fit.Batches(self._game.observation_shape, self._game.symmetries(), options, self._seed)

    def _publish(self, losses: Losses, window: WindowReport) -> tuple[Snapshot, Verdict]:
        metrics: dict[str, float] = {
            "loss": losses.total,
            "policy_loss": losses.policy,
            "value_loss": losses.value,
            "window_positions": window.positions,
            "window_newest_file": window.newest,
        }
        step = fit.current_step(self.model)
        verdicts = []

        def write(path: Path) -> None:
            # A snapshot appears with its verdict: if the program is killed before, it is trained again.
            saved_model.save_snapshot(self.model, path)
            judging = time.perf_counter()
            verdicts.append(self._judge(path, step))
            self._gate_seconds = time.perf_counter() - judging
            if verdicts[0].result:
                metrics[_PASSED] = float(verdicts[0].passed)
                metrics["gate_score"] = verdicts[0].result.score

        self.latest = self._folder.publish(step, write, metrics, promote=lambda: verdicts[0].passed)
        self._folder.prune(self._settings.training.max_snapshots)
        return self.latest, verdicts[0]

    def _judge(self, candidate: Path, step: int) -> Verdict:
        options = self._settings.gate
        if options.gate == "off":
            return Verdict(passed=True, result=None)

        def player(snapshot: Path) -> Choose:
            inference = load_inference(snapshot, self._game, batch=(options.gate_games + 1) // 2)
            return search_player(self._game, inference, self._settings.search)

        return judge(self._game, player(candidate), player(self._folder.champion().path), options, step)


def _check_network(folder: ModelFolder, settings: Settings) -> None:
    made, wanted = (_fixed_options(each) for each in (folder.settings(), settings))
    differences = [f"{name} {made[name]}, not {wanted[name]}" for name in made if made[name] != wanted[name]]
    if differences:
        raise SettingsError(
            f"model {folder.name!r} was made with {', '.join(differences)}: leave that flag out, "
            "or make another model with --init"
        )


def _fixed_options(settings: Settings) -> dict[str, Any]:
    # What the snapshots hold: the network, and the optimizer with its state.
    training_options = settings.training
    optimizer = {"optimizer": training_options.optimizer, "momentum": training_options.momentum}
    return dataclasses.asdict(settings.network) | optimizer
