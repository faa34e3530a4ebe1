"""Settings of tic-tac-toe by name, for `seraphim train NAME --init --preset=…`, in place of the game's `SETTINGS`."""

from typing import Any

from tictactoe.game import SETTINGS

# The residual Keras network of a well-known introduction to AlphaZero by way of tic-tac-toe: 75 filters of 4×4, leaky
# ReLUs, heads of 2 filters and of 1 filter and 20 units, stochastic gradient descent with momentum on equal halves of
# both losses. It gives no numbers for search and training: the search is that of `SETTINGS`; blocks, batches and step
# size are ours.
KERAS_TICTACTOE: dict[str, Any] = {
    "network": {
        "kind": "resnet",
        "blocks": 5,
        "filters": 75,
        "kernel_size": 4,
        "normalization": "batch",
        "policy_filters": 2,
        "value_filters": 1,
        "value_width": 20,
        "activation": "leaky_relu",
        "l2": 1e-4,
    },
    "search": SETTINGS["search"],
    "self_play_search": SETTINGS["self_play_search"],
    "self_play": {**SETTINGS["self_play"], "random_plies": 0},
    "training": {
        "optimizer": "sgd",
        "learning_rate": 0.02,
        "learning_rate_decay_steps": 0,
        "average_decay": 0.0,
        "batch_size": 256,
        "steps": 300,
        "precision": "float32",
        "root_value_share": 0.0,
        "average_positions": False,
        "window_start": 100_000,
    },
}

PRESETS = {"keras-tictactoe": KERAS_TICTACTOE}
