"""Every option of a model in one value, `Settings`, and its file `settings.json`.

A default exists once, in `seraphim.options`; a game overrides some of them in its
`SETTINGS`; `settings.json` holds the result; a flag overrides that for one run.

The section `search` is complete, and every search follows it. `self_play_search` has only the options that differ in
self-play, for instance `{"root": "gumbel", "readouts": 32}`.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from seraphim.errors import SettingsError
from seraphim.game import load_features
from seraphim.options import (
    GateOptions,
    NetworkOptions,
    RecordOptions,
    SearchOptions,
    SelfPlayOptions,
    TrainingOptions,
    checked,
)


@dataclass(frozen=True)
class Settings:
    """All options of a model."""

    game: str
    """Package or module of the game."""
    preset: str = ""
    """Which of the game's `PRESETS` the model started from; none: its `SETTINGS`."""
    network: NetworkOptions = field(default_factory=NetworkOptions)
    search: SearchOptions = field(default_factory=SearchOptions)
    """Every search but those of `self_play_search`: play, evaluation, gate and checks."""
    self_play_overrides: Mapping[str, Any] = field(default_factory=dict)
    """Options of the search that have another value in self-play; the section `self_play_search` of the file."""
    self_play: SelfPlayOptions = field(default_factory=SelfPlayOptions)
    records: RecordOptions = field(default_factory=RecordOptions)
    training: TrainingOptions = field(default_factory=TrainingOptions)
    gate: GateOptions = field(default_factory=GateOptions)

    def __post_init__(self) -> None:
        """Validate.

        Raises:
            SettingsError: self-play's search has options that do not go together.
        """
        _ = self.self_play_search

    @property
    def self_play_search(self) -> SearchOptions:
        """Return the options of self-play's search, all of them."""
        return dataclasses.replace(self.search, **self.self_play_overrides)

    def override(self, values: Mapping[str, Any]) -> "Settings":
        """Return these settings with some options replaced, each named by itself, e.g. `{"readouts": 100}`.

        An option of the search counts for every search, self-play's too; `self_play_readouts` for self-play's alone.

        Raises:
            SettingsError: an option is unknown, or its value of the wrong type or out of range.
        """
        sections: dict[str, dict[str, Any]] = {name: {} for name in SECTIONS}
        for option, value in values.items():
            if option not in OPTIONS:
                raise SettingsError(f"unknown setting {option!r}: expected one of {', '.join(sorted(OPTIONS))}")
            section = OPTIONS[option]
            sections[section][option.removeprefix(PREFIX) if section == SELF_PLAY_SEARCH else option] = value
        kept = {option: value for option, value in self.self_play_overrides.items() if option not in sections["search"]}
        return _with_sections(self, {**sections, SELF_PLAY_SEARCH: kept | sections[SELF_PLAY_SEARCH]})

    def to_dict(self) -> dict[str, Any]:
        """Return these settings as `settings.json` has them."""
        named = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        return {
            SELF_PLAY_SEARCH if name == "self_play_overrides" else name: _plain(value) for name, value in named.items()
        }


SELF_PLAY_SEARCH = "self_play_search"
"""The section whose options override those of `search` in self-play."""

PREFIX = "self_play_"
"""What the name of an option of the search begins with where it counts for self-play alone."""


SECTIONS: dict[str, type] = {
    "network": NetworkOptions,
    "search": SearchOptions,
    SELF_PLAY_SEARCH: SearchOptions,
    "self_play": SelfPlayOptions,
    "records": RecordOptions,
    "training": TrainingOptions,
    "gate": GateOptions,
}


def _hints(kind: type) -> dict[str, Any]:
    return {field.name: get_type_hints(kind, include_extras=True)[field.name] for field in dataclasses.fields(kind)}


OPTIONS: dict[str, str] = {
    (PREFIX if section == SELF_PLAY_SEARCH else "") + option: section
    for section, kind in SECTIONS.items()
    for option in _hints(kind)
}
"""The section of each option, by the name that flags and `Settings.override` have for it; names are unique."""


def default_settings(game: str, preset: str = "") -> Settings:
    """Return the settings with which models of a game start: the defaults, and over them what the game offers.

    Args:
        game: package or module of the game.
        preset: the name of one of the game's `PRESETS`; none takes its `SETTINGS`.

    Raises:
        GameError: there is no such game.
        SettingsError: there is no such preset, or what the game offers is not valid.
    """
    features = load_features(game)
    presets = {"": features.settings, **features.presets}
    if preset not in presets:
        known = ", ".join(name for name in presets if name) or "none, it offers no PRESETS"
        raise SettingsError(f"{game} has no preset {preset!r}: expected {known}")
    return _with_sections(Settings(game, preset), presets[preset])


def load_settings(path: Path) -> Settings:
    """Read a `settings.json`.

    Raises:
        SettingsError: the file is no JSON, names an unknown option, or a value is of the wrong type or out of range.
    """
    try:
        content = json.loads(path.read_text())
    except ValueError as error:
        raise SettingsError(f"{path} is not valid JSON ({error}): fix it, or start a new model with --init") from error
    if not isinstance(content, dict) or not isinstance(content.get("game"), str):
        raise SettingsError(f"{path} names no game: expected an object with the key 'game'")
    game, preset = content.pop("game"), content.pop("preset", "")
    if not isinstance(preset, str):
        raise SettingsError(f"{path}: preset must be a name, not {preset!r}")
    try:
        return _with_sections(Settings(game, preset), content)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def dump_settings(settings: Settings) -> str:
    """Return the content of a `settings.json`."""
    return json.dumps(settings.to_dict(), indent=2) + "\n"


def _with_sections(settings: Settings, sections: Mapping[str, Any]) -> Settings:
    changes: dict[str, Any] = {}
    for section, values in sections.items():
        if section not in SECTIONS:
            raise SettingsError(f"unknown section {section!r}: expected one of {', '.join(SECTIONS)}")
        if not isinstance(values, Mapping):
            raise SettingsError(f"section {section!r} must be an object, not {values!r}")
        hints = _hints(SECTIONS[section])
        options = {option: _checked(option, value, hints) for option, value in values.items()}
        if section == SELF_PLAY_SEARCH:
            changes["self_play_overrides"] = options
        else:
            changes[section] = dataclasses.replace(getattr(settings, section), **options)
    return dataclasses.replace(settings, **changes)


# Options of earlier versions, which settings.json files may still have, and what came in their place.
_REPLACED = {"max_files": "games are kept as long as training can draw from them (max_window)"}


def _check_replaced(option: str, value: Any) -> None:
    if option == "gumbel_readouts":
        section = f'"{SELF_PLAY_SEARCH}": {{"root": "gumbel", "readouts": {value}}}'
        instead = f" and add the section {section}" if value else ""
        raise SettingsError(f'gumbel_readouts is no longer an option: delete it from "self_play"{instead}')
    if option in _REPLACED:
        raise SettingsError(f"{option} is no longer an option: delete it; {_REPLACED[option]}")


def _plain(value: Any) -> Any:
    # A section as JSON has it.
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    return dict(value) if isinstance(value, Mapping) else value


def _checked(option: str, value: Any, hints: Mapping[str, Any]) -> Any:
    if option not in hints:
        _check_replaced(option, value)
        raise SettingsError(f"unknown setting {option!r}: expected one of {', '.join(hints)}")
    return checked(option, value, hints[option])
