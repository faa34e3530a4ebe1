"""All options of a model in one value, `Settings`, and its file `settings.json`.

A default exists once, in `seraphim.options`, whose classes check all values; a game overrides some of them in its
`SETTINGS`; `settings.json` holds the result; a flag overrides that for one run. The defaults are the recipe that suits
most games; `default_settings` adapts four of them to the game.

The section `search` is complete, and every search follows it. `self_play_search` has only the options that differ in
self-play; in a `settings.json` without it none does.
"""

import ast
import dataclasses
import errno
import functools
import inspect
import itertools
import json
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_type_hints

from seraphim.errors import SettingsError, shown
from seraphim.game import AnyGame, load_features, load_game, name_of
from seraphim.game.features import features_of, has_chance
from seraphim.options import (
    GateOptions,
    NetworkOptions,
    RecordOptions,
    SearchOptions,
    SelfPlayOptions,
    TrainingOptions,
    converted,
)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file of at most 16 MiB.

    Raises:
        OSError: it cannot be read.
        ValueError: there is anything else in it.
    """
    if path.exists() and not path.is_file():  # a pipe has no end
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    with path.open("rb") as file:
        data = file.read(_MOST_JSON + 1)
    if len(data) > _MOST_JSON:
        raise ValueError(f"it has more than {_MOST_JSON:,} bytes")
    try:
        content = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("it is not an object")
    return content


def read_json_if_valid(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file; None where `read_json` raises an error."""
    try:
        return read_json(path)
    except (OSError, ValueError):
        return None


@dataclass(frozen=True)
class Settings:
    """All options of a model."""

    game: str
    """Package or module of the game."""
    preset: str = ""
    """The one of the game's `PRESETS` that the model started from; empty for its `SETTINGS`."""
    network: NetworkOptions = field(default_factory=NetworkOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    """Options of every search except that of self-play: play, evaluation, gate and checks."""
    self_play_overrides: Mapping[str, Any] = field(default_factory=lambda: {"root": "gumbel", "readouts": 32})
    """Options of the search with another value in self-play; the section `self_play_search` of the file. A few readouts
    from a Gumbel root make more games in the same time, and more varied ones."""
    self_play: SelfPlayOptions = field(default_factory=SelfPlayOptions)
    records: RecordOptions = field(default_factory=RecordOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    gate: GateOptions = field(default_factory=GateOptions)

    def __post_init__(self) -> None:
        """Raise a SettingsError if self-play's search has options that do not go together."""
        _ = self.self_play_search

    @property
    def self_play_search(self) -> SearchOptions:
        """All options of self-play's search."""
        return dataclasses.replace(self.search, **self.self_play_overrides)

    def override(self, values: Mapping[str, Any]) -> "Settings":
        """Return these settings with some options replaced, for instance `{"readouts": 100}`.

        An option of the search counts for every search, self-play's too; `self_play_readouts` for self-play's alone.

        Raises:
            SettingsError: an option is unknown, or its value of the wrong type or out of range.
        """
        sections: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
        for option, value in values.items():
            if option in REMOVED:
                raise SettingsError(removal(option, value))
            if option not in OPTIONS:
                raise SettingsError(f"unknown setting {option!r}: expected one of {', '.join(sorted(OPTIONS))}")
            section = OPTIONS[option]
            sections[section][option.removeprefix(PREFIX) if section == SELF_PLAY_SEARCH else option] = value
        kept = {option: value for option, value in self.self_play_overrides.items() if option not in sections["search"]}
        return _with_sections(self, {**sections, SELF_PLAY_SEARCH: kept | sections[SELF_PLAY_SEARCH]})

    def at_step(self, step: int) -> "Settings":
        """Return these settings with the readouts that a model has in self-play after `step` steps of training."""
        growth, readouts = self.self_play.readouts_growth_steps, self.self_play_search.readouts
        return self.override({f"{PREFIX}readouts": readouts + readouts * step // growth}) if growth else self

    def to_dict(self) -> dict[str, Any]:
        """Return these settings as `settings.json` has them."""
        content = dataclasses.asdict(self)
        return {SELF_PLAY_SEARCH if name == "self_play_overrides" else name: each for name, each in content.items()}


_MOST_JSON = 16 << 20  # bytes of a file
SELF_PLAY_SEARCH = "self_play_search"
"""The section whose options override those of `search` in self-play."""

PREFIX = "self_play_"
"""Prefix of the name of an option of the search where it counts for self-play alone."""

Goal = Literal["search", "network", "none"]  # of learning
Chooser = Literal["search", "raw"]  # the computer's, in a game with a person
Temperature = Literal["cold", "hot", "auto"]
Human = Literal["first", "second", "both", "none"]
Rolls = Literal["program", "enter"]

SECTIONS: dict[str, type] = {
    "network": NetworkOptions,
    "search": SearchOptions,
    SELF_PLAY_SEARCH: SearchOptions,
    "self_play": SelfPlayOptions,
    "records": RecordOptions,
    "training": TrainingOptions,
    "gate": GateOptions,
}


OPTIONS: dict[str, str] = {
    (PREFIX if section == SELF_PLAY_SEARCH else "") + option.name: section
    for section, kind in SECTIONS.items()
    for option in dataclasses.fields(kind)
}
"""The section of each option, by its unique name in flags and `Settings.override`."""


def default_settings(game: AnyGame, preset: str = "") -> Settings:
    """Return the settings with which models of a game start: the defaults, overridden by the game's.

    A game without rows, columns and planes gets an mlp; one that offers known results uses them; a short one has fewer
    random moves at the beginning; and where chance moves, self-play searches by PUCT: a Gumbel root scales values from
    the worst move to the best, so that with a few readouts of each the luck of the draw decides.

    Args:
        game: the game.
        preset: the name of one of the game's `PRESETS`; empty for its `SETTINGS`.

    Raises:
        GameError: there is no such game.
        SettingsError: there is no such preset, or what the game offers is not valid.
    """
    features, rules = load_features(game), load_game(game)
    presets = {"": features.settings, **features.presets}
    if preset not in presets:
        known = ", ".join(name for name in presets if name) or "none, it offers no PRESETS"
        raise SettingsError(f"{name_of(game)} has no preset {preset!r}: expected {known}")
    suited = {
        "network": {"kind": "resnet" if len(rules.observation_shape) == 3 else "mlp"},
        "search": {"known_results": features_of(rules).known_results is not None},
        "self_play": {"random_plies": min(SelfPlayOptions.random_plies, rules.max_plies // 4)},
    }
    start, own = _with_sections(Settings(name_of(game), preset), suited), presets[preset]
    if has_chance(rules):
        start = dataclasses.replace(start, self_play_overrides={**start.self_play_overrides, "root": "puct"})
    overrides = own.get(SELF_PLAY_SEARCH, {})
    if isinstance(overrides, Mapping):
        overrides = {**start.self_play_overrides, **overrides}
    settings = _with_sections(start, {**own, SELF_PLAY_SEARCH: overrides})
    search, overrides = settings.search, settings.self_play_overrides
    differing = {option: value for option, value in overrides.items() if value != getattr(search, option)}
    return dataclasses.replace(settings, self_play_overrides=differing)


def load_settings(path: Path) -> Settings:
    """Read a `settings.json`.

    Raises:
        SettingsError: the file is no JSON, names an unknown option, or a value is of the wrong type or out of range.
    """
    try:
        content = read_json(path)
    except ValueError as error:
        raise SettingsError(f"{path} is not valid JSON ({error}): fix it, or start a new model") from error
    if not isinstance(content.get("game"), str):
        raise SettingsError(f"{path} names no game: expected an object with the key 'game'")
    game, preset = content.pop("game"), content.pop("preset", "")
    if not isinstance(preset, str):
        raise SettingsError(f"{path}: preset must be a name, not {shown(preset)}")
    try:
        return _with_sections(_with_sections(Settings(game, preset, self_play_overrides={}), _LEFT_OUT), content)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def dump_settings(settings: Settings) -> str:
    """Return the content of a `settings.json`."""
    return json.dumps(settings.to_dict(), indent=2) + "\n"


@functools.cache
def option_meanings(kind: type) -> dict[str, str]:
    """Return the docstring below each field of an option class, by the field's name."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0].body  # type: ignore[attr-defined]
    meanings = {}
    for option, text in itertools.pairwise(body):
        if isinstance(option, ast.AnnAssign) and isinstance(text, ast.Expr):
            meanings[option.target.id] = " ".join(text.value.value.split())  # type: ignore[union-attr, attr-defined]
    return meanings


def _with_sections(settings: Settings, sections: Mapping[str, Any]) -> Settings:
    changes: dict[str, Any] = {}
    for section, values in sections.items():
        if section not in SECTIONS:
            raise SettingsError(f"unknown section {shown(section)}: expected one of {', '.join(SECTIONS)}")
        if not isinstance(values, Mapping):
            raise SettingsError(f"section {section!r} must be an object, not {shown(values)}")
        known = [each.name for each in dataclasses.fields(SECTIONS[section])]
        for option, value in values.items():
            former, accepted, _ = REMOVED.get(option, ("", _NONE, ""))
            if former == ("search" if section == SELF_PLAY_SEARCH else section):
                if value != accepted:
                    raise SettingsError(removal(option, value))
            elif option not in known:
                raise SettingsError(f"unknown setting {shown(option)}: expected one of {', '.join(known)}")
        kept = {option: value for option, value in values.items() if option in known}
        if section == SELF_PLAY_SEARCH:
            kinds = get_type_hints(SearchOptions, include_extras=True)
            overrides = {option: converted(option, value, kinds[option]) for option, value in kept.items()}
            changes["self_play_overrides"] = overrides
        else:
            changes[section] = dataclasses.replace(getattr(settings, section), **kept)
    return dataclasses.replace(settings, **changes)


# The values of options that a settings.json may leave out because it is older than they are.
_LEFT_OUT: dict[str, dict[str, Any]] = {
    "network": {"blocks": 5, "filters": 64, "activation": "relu"},
    "search": {"solver": False},
    "self_play": {"readouts_growth_steps": 0, "random_plies": 0},
    "training": {
        "learning_rate_decay_steps": 0,
        "precision": "float32",
        "root_value_share": 0.0,
        "average_positions": False,
        "window_start": 25_000,
    },
}

_NONE = object()  # no value is accepted
_UNVISITED = "an action without a visit has a value of 0"
_WINDOW = "the window grows as KataGo's"

REMOVED: dict[str, tuple[str, Any, str]] = {
    "cpuct_base": ("search", 0.0, "the weight of exploration is constant"),
    "fpu": ("search", "zero", _UNVISITED),
    "fpu_reduction": ("search", 0.2, _UNVISITED),
    "root_temperature": ("search", 1.0, "the root's priors are the network's"),
    "momentum": ("training", 0.9, "that of sgd is 0.9"),
    "value_loss_weight": ("training", 1.0, "policy_loss_weight weighs the other loss"),
    "window_exponent": ("training", 0.75, _WINDOW),
    "window_growth": ("training", 0.4, _WINDOW),
    "learning_rate_half_life": ("training", _NONE, "learning_rate_decay_steps halves it once"),
    "max_files": ("records", _NONE, "games are kept as long as training can draw from them (max_window)"),
    "gumbel_readouts": (
        "self_play",
        _NONE,
        'where it is above 0, add the section "self_play_search": {{"root": "gumbel", "readouts": {}}}',
    ),
}
"""Options of earlier versions: the section; the value that is now in the code, which a file may have; why they went."""


def removal(option: str, value: object = None) -> str:
    """Return why an option of earlier versions is refused."""
    return f"{option} is no longer an option: delete it; {REMOVED[option][2].format(shown(value))}"
