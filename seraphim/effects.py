"""When an option has an effect: which parts of a run read it, and what it requires of other options.

A flag without an effect is refused, lest a person think that it changed the run. In `settings.json` an option may be
without effect, because the file has all of them.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from seraphim.game import load_features
from seraphim.options import SearchOptions
from seraphim.settings import OPTIONS, PREFIX, SELF_PLAY_SEARCH, Settings

Part = Literal[
    "creation",  # a new model gets its network and optimizer
    "self_play",
    "cycle",  # self-play and training in turns
    "training",
    "gate",  # the match after a training, unless the gate is off
    "checks",  # of a new champion against solved positions, where the game has any
    "evaluation",
    "analysis",  # of a person's game; its root is always searched by PUCT
    "analysis_noise",
    "analysis_draws",  # moves drawn by ply, as in self-play
]
"""Something that a program does in a run."""

Options = TypeVar("Options")


class Effect(NamedTuple, Generic[Options]):
    """When an option has an effect."""

    parts: frozenset[Part]  # those that read it
    holds: Callable[[Options], bool]  # of the settings, or of the options of the search that reads it
    needs: str  # both in words


def _effect(parts: str, holds: Callable[[Options], bool], needs: str) -> Effect[Options]:
    return Effect(frozenset(parts.split()), holds, needs)  # type: ignore[arg-type]


def _always(_: object) -> bool:
    return True


_SEARCHES = "self_play gate checks evaluation analysis"
_READOUTS = "self_play gate checks analysis"  # an evaluation makes searches of several sizes
_ROOTS = "self_play gate checks evaluation"
_NOISY = "self_play analysis_noise"
_NOISE_NEEDS = "self-play, or noise in interactive.py, with root=puct"


def _is_puct(search: SearchOptions) -> bool:
    return search.root == "puct"


SEARCH_EFFECTS: dict[str, Effect[SearchOptions]] = {
    "readouts": _effect(_READOUTS, _always, "a search other than that of evaluate.py, which has --searches"),
    "cpuct": _effect(_SEARCHES, _is_puct, "a search with root=puct"),
    "tempering_point": _effect(
        "self_play analysis_draws", _is_puct, "self-play, or --temperature=auto in interactive.py, with root=puct"
    ),
    "dirichlet_alpha": _effect(
        _NOISY,
        lambda search: _is_puct(search) and search.noise_coefficient > 0,
        f"{_NOISE_NEEDS} and noise_coefficient above 0",
    ),
    "noise_coefficient": _effect(_NOISY, _is_puct, _NOISE_NEEDS),
    "leaf": _effect(_SEARCHES, _always, "a search"),
    "root": _effect(_ROOTS, _always, "a search other than that of interactive.py, which is always by PUCT"),
    "gumbel_actions": _effect(_ROOTS, lambda search: search.root == "gumbel", "a search with root=gumbel"),
    "cpuct_base": _effect(_SEARCHES, _is_puct, "a search with root=puct"),
    "fpu": _effect(_SEARCHES, _is_puct, "a search with root=puct"),
    "fpu_reduction": _effect(
        _SEARCHES,
        lambda search: _is_puct(search) and search.fpu == "reduction",
        "a search with root=puct and fpu=reduction",
    ),
    "root_temperature": _effect(_NOISY, _is_puct, _NOISE_NEEDS),
    "solver": _effect(_SEARCHES, _always, "a search"),
    "fast_wins": _effect(_SEARCHES, _always, "a search"),
    "cache_megabytes": _effect(_SEARCHES, _always, "a search"),
}
"""The options of the search, each looked at in the options of every search that reads it."""


def _is_mlp(settings: Settings) -> bool:
    return settings.network.kind == "mlp"


def _is_resnet(settings: Settings) -> bool:
    return settings.network.kind == "resnet"


def _has_gate(settings: Settings) -> bool:
    return settings.gate.gate != "off"


def _window_grows(settings: Settings) -> bool:
    return settings.training.window_start < settings.training.max_window


_NEW = "a new model"
_PLAY = "self-play"
_TRAINING = "training"

EFFECTS: dict[str, Effect[Settings]] = {
    "kind": _effect("creation", _always, _NEW),
    **dict.fromkeys(("depth", "width"), _effect("creation", _is_mlp, f"{_NEW} with kind=mlp")),
    **dict.fromkeys(
        ("blocks", "filters", "kernel_size", "policy_filters", "value_filters"),
        _effect("creation", _is_resnet, f"{_NEW} with kind=resnet"),
    ),
    **dict.fromkeys(("activation", "value_width", "l2"), _effect("creation", _always, _NEW)),
    "concurrent_games": _effect("self_play", _always, _PLAY),
    "games_per_generation": _effect("cycle", _always, "self-play and training in turns, as in learn.py"),
    "random_plies": _effect("self_play", _always, _PLAY),
    "random_share": _effect(
        "self_play", lambda settings: settings.self_play.random_plies > 0, f"{_PLAY} with random_plies above 0"
    ),
    "games_per_file": _effect("self_play", _always, _PLAY),
    "optimizer": _effect("creation", _always, _NEW),
    "momentum": _effect(
        "creation", lambda settings: settings.training.optimizer == "sgd", f"{_NEW} with optimizer=sgd"
    ),
    **dict.fromkeys(
        (
            *("learning_rate", "learning_rate_half_life", "batch_size", "steps", "precision", "value_loss_weight"),
            *("average_positions", "window_start", "max_window", "max_snapshots"),
        ),
        _effect("training", _always, _TRAINING),
    ),
    "root_value_share": _effect(
        "training",
        lambda settings: settings.training.value_loss_weight > 0,
        f"{_TRAINING} with value_loss_weight above 0",
    ),
    **dict.fromkeys(
        ("window_exponent", "window_growth"),
        _effect("training", _window_grows, f"{_TRAINING} with window_start below max_window"),
    ),
    "gate": _effect("training", _always, _TRAINING),
    **dict.fromkeys(
        ("gate_games", "gate_score"), _effect("training", _has_gate, f"{_TRAINING} with gate=score or sprt")
    ),
}
"""All other options."""


def has_two_searches(parts: Collection[Part]) -> bool:
    """Return whether self-play's search can be told from others that run, or are stored, beside it."""
    return "self_play" in parts and not {"gate", "checks", "evaluation"}.isdisjoint(parts)


def has_checks(game: str) -> bool:
    """Return whether a game, by package or module, offers solved positions to check models against."""
    return load_features(game).position_sets is not None


def is_read(option: str, parts: Collection[Part]) -> bool:
    """Return whether a run of these parts may read an option, by its name in `OPTIONS`, whatever its settings."""
    if OPTIONS[option] == SELF_PLAY_SEARCH:
        return has_two_searches(parts) and is_read(option.removeprefix(PREFIX), ["self_play"])
    return not _effect_of(option).parts.isdisjoint(parts)


def find_idle(options: Collection[str], settings: Settings, parts: Collection[Part]) -> dict[str, str]:
    """Return those of some options that change nothing in a run, each with what it needs to change something.

    Args:
        options: that were given, by their names in `OPTIONS`.
        settings: of the run, the given options included.
        parts: what the run does.
    """
    needs = {option: _needs(option, options, settings, parts) for option in options}
    return {option: text for option, text in needs.items() if text}


def _effect_of(option: str) -> Effect[Any]:
    return SEARCH_EFFECTS.get(option) or EFFECTS[option]


def _needs(option: str, given: Collection[str], settings: Settings, parts: Collection[Part]) -> str:
    # What an option that changes nothing needs; nothing if it changes something.
    if OPTIONS[option] == SELF_PLAY_SEARCH:
        name = option.removeprefix(PREFIX)
        if "self_play" not in parts:
            return "self-play"
        if not has_two_searches(parts):
            return f"another search beside self-play's: give --{name}"
        return _needs(name, [], settings, ["self_play"])
    effect = _effect_of(option)
    reading = effect.parts.intersection(parts)
    if OPTIONS[option] == "search":
        if PREFIX + option in given:
            reading -= {"self_play"}
        changes = any(effect.holds(search) for search in _searches(settings, reading))
    else:
        changes = bool(reading) and effect.holds(settings)
    return "" if changes else effect.needs


def _searches(settings: Settings, parts: Collection[Part]) -> Iterator[SearchOptions]:
    # The options of the searches that some parts of a run make.
    for part in parts:
        if part == "self_play":
            yield settings.self_play_search
        elif part.startswith("analysis"):
            yield replace(settings.search, root="puct")
        elif part == "gate":
            yield from [settings.search] if _has_gate(settings) else []
        elif part == "checks":
            yield from [settings.search] if has_checks(settings.game) else []
        else:
            yield settings.search
