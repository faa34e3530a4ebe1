"""From one generation of a model to the next: the champion, trained on the newest games, becomes the new champion.

Joins networks, training, records and the store; decides nothing about any of them.
"""

import time
from dataclasses import dataclass

from seraphim import networks, training
from seraphim.errors import ModelError, RecordError, SettingsError
from seraphim.game import Game
from seraphim.records import Positions, WindowReport, read_window
from seraphim.settings import Settings
from seraphim.store import ModelFolder, Snapshot
from seraphim.training import Losses, ScalarLog

SMALL_EXECUTION = 32  # steps that an mlp takes at a time: one takes it about as long as Keras's bookkeeping


def bootstrap(folder: ModelFolder, game: Game, settings: Settings, seed: int) -> Snapshot:
    """Make a new model with random weights, and make that snapshot the champion.

    If the program is killed before the end, the same call starts again.

    Raises:
        ModelError: the model exists.
        SettingsError: the network does not fit the game.
    """
    folder.check_new()  # at once, not when TensorFlow is there
    model = networks.build(game, settings.network, seed)
    training.prepare(model, settings.training)
    with folder.lock():
        folder.create(settings)
        snapshot = folder.publish(0, lambda path: networks.save_snapshot(model, path))
        folder.promote(snapshot)
    return snapshot
