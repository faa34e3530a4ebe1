"""When an option has an effect: which parts of a run read it, and which other options it needs.

A flag without an effect is refused, so that nobody believes it changed the run. In `settings.json` an option may be
without effect, because the file has all of them.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any, Literal, NamedTuple

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


class Condition(NamedTuple):
    """What an option needs of the other options of its section."""

    words: str
    holds: Callable[[Any], bool]  # of the section


class Effect(NamedTuple):
    """When an option has an effect."""

    parts: frozenset[Part]  # those that read it
    conditions: tuple[Condition, ...]
    needs: str  # both in words


def _is(option: str, *values: str) -> Condition:
    return Condition(f"{option}={' or '.join(values)}", lambda section: getattr(section, option) in values)


def _above_0(option: str) -> Condition:
    return Condition(f"{option} above 0", lambda section: getattr(section, option) > 0)


_PUCT = _is("root", "puct")
_WINDOW_GROWS = Condition("window_start below max_window", lambda section: section.window_start < section.max_window)

_SEARCHES, _ROOTS = "self_play gate checks evaluation analysis", "self_play gate checks evaluation"
_NOISY = ("self_play analysis_noise", "self-play, or noise in interactive.py,")
_NEW, _PLAY, _TRAINING = ("creation", "a new model"), ("self_play", "self-play"), ("training", "training")

# Options, the parts that read them, the same in words, and conditions.
_TABLE: list[tuple[Any, ...]] = [
    ("kind activation value_width l2 optimizer average_decay", *_NEW),
    ("depth width", *_NEW, _is("kind", "mlp")),
    ("blocks filters kernel_size normalization policy_filters value_filters", *_NEW, _is("kind", "resnet")),
    ("momentum", *_NEW, _is("optimizer", "sgd")),
    # An evaluation makes searches with several numbers of readouts.
    ("readouts", "self_play gate checks analysis", "a search other than that of evaluate.py, which has --searches"),
    ("root", _ROOTS, "a search other than that of interactive.py, which is always by PUCT"),
    ("leaf solver fast_wins known_results cache_megabytes", _SEARCHES, "a search"),
    ("cpuct cpuct_base fpu", _SEARCHES, "a search", _PUCT),
    ("fpu_reduction", _SEARCHES, "a search", _PUCT, _is("fpu", "reduction")),
    ("gumbel_actions", _ROOTS, "a search", _is("root", "gumbel")),
    ("tempering_point", "self_play analysis_draws", "self-play, or --temperature=auto in interactive.py,", _PUCT),
    ("noise_coefficient root_temperature", *_NOISY, _PUCT),
    ("dirichlet_alpha", *_NOISY, _PUCT, _above_0("noise_coefficient")),
    ("concurrent_games readouts_growth_steps random_plies games_per_file", *_PLAY),
    ("random_share", *_PLAY, _above_0("random_plies")),
    ("games_per_generation", "cycle", "self-play and training in turns, as in learn.py"),
    ("samples_per_position", *_TRAINING, Condition("steps=0", lambda section: section.steps == 0)),
    ("learning_rate learning_rate_decay_steps batch_size steps precision value_loss_weight", *_TRAINING),
    ("average_positions window_start max_snapshots gate", *_TRAINING),
    ("max_window", "self_play training", "self-play, which removes older games, or training"),
    ("root_value_share", *_TRAINING, _above_0("value_loss_weight")),
    ("window_exponent window_growth", *_TRAINING, _WINDOW_GROWS),
    ("gate_games gate_score", *_TRAINING, _is("gate", "score", "sprt")),
]


def _effect(parts: str, words: str, *conditions: Condition) -> Effect:
    needs = f"{words} with {' and '.join(each.words for each in conditions)}" if conditions else words
    return Effect(frozenset(parts.split()), conditions, needs)  # type: ignore[arg-type]


EFFECTS: dict[str, Effect] = {option: _effect(*row) for options, *row in _TABLE for option in options.split()}
"""The effect of each option; those of the search are looked up in the options of every search that reads them."""


def has_two_searches(parts: Collection[Part]) -> bool:
    """Return whether other searches than self-play's run, or are stored, beside it."""
    return "self_play" in parts and not {"gate", "checks", "evaluation"}.isdisjoint(parts)


def has_checks(game: str) -> bool:
    """Return whether a game, by package or module, offers solved positions to check models against."""
    return load_features(game).position_sets is not None


def is_read(option: str, parts: Collection[Part]) -> bool:
    """Return whether a run of these parts may read an option, by its name in `OPTIONS`, whatever its settings."""
    if OPTIONS[option] == SELF_PLAY_SEARCH:
        return has_two_searches(parts) and is_read(option.removeprefix(PREFIX), ["self_play"])
    return not EFFECTS[option].parts.isdisjoint(parts)


def find_idle(options: Collection[str], settings: Settings, parts: Collection[Part]) -> dict[str, str]:
    """Return the options without effect in a run, each with what it needs to have one.

    Args:
        options: the options that were given, by their names in `OPTIONS`.
        settings: of the run, the given options included.
        parts: what the run does.
    """
    needs = {option: _needs(option, options, settings, parts) for option in options}
    return {option: text for option, text in needs.items() if text}


def _needs(option: str, given: Collection[str], settings: Settings, parts: Collection[Part]) -> str:
    # What an option without effect needs; nothing if it has one.
    section = OPTIONS[option]
    if section == SELF_PLAY_SEARCH:
        name = option.removeprefix(PREFIX)
        if "self_play" not in parts:
            return "self-play"
        if not has_two_searches(parts):
            return f"another search beside self-play's: give --{name}"
        return _needs(name, [], settings, ["self_play"])
    effect = EFFECTS[option]
    reading = effect.parts.intersection(parts)
    if section == "search":
        if PREFIX + option in given:
            reading -= {"self_play"}
        read = list(_searches(settings, reading))
    else:
        read = [getattr(settings, section)] if reading else []
    has_effect = any(all(condition.holds(each) for condition in effect.conditions) for each in read)
    return "" if has_effect else effect.needs


def _searches(settings: Settings, parts: Collection[Part]) -> Iterator[SearchOptions]:
    # The options of the searches that some parts of a run make.
    for part in parts:
        if part == "self_play":
            yield settings.self_play_search
        elif part.startswith("analysis"):
            yield replace(settings.search, root="puct")
        elif (part != "gate" or settings.gate.gate != "off") and (part != "checks" or has_checks(settings.game)):
            yield settings.search
