"""Settings of connect four by name, for `seraphim train NAME --init --preset=…`, in place of the game's `SETTINGS`."""

from typing import Any

# DeepFour: AlphaZero's method for connect four, as its author describes it; 8 hours a generation on 16 threads, six
# generations. A win counts 1.18 - 9·plies/350. A generation is 100,000 moves, about 3,000 games. Options that are not
# described, such as the number of concurrent games, have their defaults, and its network sees the game's planes.
DEEPFOUR: dict[str, Any] = {
    "network": {
        "kind": "resnet",
        "blocks": 5,
        "filters": 64,
        "kernel_size": 4,
        "normalization": "batch",
        "policy_filters": 2,
        "value_filters": 1,
        "value_width": 32,
        "activation": "relu",
        "l2": 1e-4,
    },
    "search": {
        "readouts": 700,
        "cpuct": 2.0,
        "tempering_point": 5,
        "dirichlet_alpha": 1.0,
        "noise_coefficient": 0.2,
        "solver": False,
        "fast_wins": 0.9,
    },
    "self_play_search": {"root": "puct", "readouts": 700},
    "self_play": {"games_per_generation": 3000, "readouts_growth_steps": 0, "random_plies": 0},
    "training": {
        "optimizer": "sgd",
        "learning_rate": 1e-3,
        "learning_rate_decay_steps": 0,
        "average_decay": 0.0,
        "batch_size": 512,
        "steps": 300,
        "precision": "float32",
        "root_value_share": 0.0,
        "average_positions": False,
        "window_start": 500_000,
        "max_window": 500_000,
    },
    "gate": {"gate": "score", "gate_games": 30, "gate_score": 0.55},
}

PRESETS = {"deepfour": DEEPFOUR}
