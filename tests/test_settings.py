"""Settings: one file with all options; the search of self-play inherits from the other searches."""

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seraphim.errors import SettingsError
from seraphim.game import PlainGame, load_features
from seraphim.options import SearchOptions
from seraphim.settings import (
    OPTIONS,
    SECTIONS,
    SELF_PLAY_SEARCH,
    Settings,
    default_settings,
    dump_settings,
    load_settings,
)
from seraphim.storage.shipped import SHIPPED

GUMBEL = {"root": "gumbel", "readouts": 32}
AS_SEARCH = Settings("tictactoe", self_play_overrides={})  # self-play searches as everything else


def stored(directory: Path, content: dict[str, Any]) -> Settings:
    """The settings of a file with this content."""
    path = directory / "settings.json"
    path.write_text(json.dumps({"game": "tictactoe", **content}))
    return load_settings(path)


class Line(PlainGame):
    """A game of few plies and a flat observation, that knows its results."""

    name, num_actions, observation_shape, state_words, max_plies = "line", 2, (4,), 1, 6

    def known_results(self, state: Any) -> None:
        return None


def test_a_game_of_ones_own_starts_with_the_recipe_of_the_games_here() -> None:
    settings = default_settings("tictactoe.plain")
    assert (settings.network.kind, settings.network.filters, settings.network.activation) == ("resnet", 32, "silu")
    assert settings.self_play_overrides == GUMBEL
    assert settings.search.solver and settings.training.average_positions


def test_the_defaults_suit_the_game() -> None:
    settings = default_settings(Line())
    assert (settings.network.kind, settings.search.known_results, settings.self_play.random_plies) == ("mlp", True, 1)
    settings = default_settings("hex.plain")
    assert (settings.network.kind, settings.search.known_results, settings.self_play.random_plies) == (
        "resnet",
        False,
        8,
    )


def test_a_game_overrides_the_search_of_self_play_option_by_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from tictactoe import GAME\n\nSETTINGS = {'self_play_search': {'readouts': 50}}\n"
    (tmp_path / "patient.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    assert default_settings("patient").self_play_overrides == {"root": "gumbel", "readouts": 50}


@pytest.mark.parametrize(
    ("game", "root"), [("connectfour", "gumbel"), ("pig", "puct"), ("twenty48", "puct"), ("cube", "gumbel")]
)
def test_self_play_searches_by_puct_where_chance_moves_unless_the_game_says_otherwise(game: str, root: str) -> None:
    assert default_settings(game).self_play_search.root == root


@pytest.mark.parametrize("game", ["connectfour", "cube", "hex", "othello", "pig", "tictactoe", "twenty48:2x3"])
def test_the_games_here_start_as_the_models_that_come_with_them(game: str) -> None:
    folder = SHIPPED / "models" / game.replace(":", "-")
    settings, shipped = default_settings(game), load_settings(folder / "settings.json")
    if settings.network.kind == "mlp":  # which has no blocks
        settings = settings.override({"blocks": shipped.network.blocks, "filters": shipped.network.filters})
    assert settings == shipped


@pytest.mark.parametrize(("game", "preset"), [("connectfour", "deepfour"), ("tictactoe", "keras-tictactoe")])
def test_a_preset_does_not_depend_on_the_defaults_that_changed(game: str, preset: str, tmp_path: Path) -> None:
    settings = default_settings(game, preset)
    older = stored(tmp_path, {"game": game, "preset": preset, **load_features(game).presets[preset]})
    assert replace(settings, self_play_overrides=older.self_play_overrides) == older
    assert settings.self_play_search == settings.search == older.self_play_search


def test_what_a_file_leaves_out_is_as_it_was_when_the_file_was_written(tmp_path: Path) -> None:
    settings = stored(tmp_path, {})
    assert (settings.network.filters, settings.network.blocks, settings.network.activation) == (64, 5, "relu")
    assert not settings.search.solver and not settings.training.average_positions


def test_self_play_searches_as_everything_else_in_a_file_without_its_section(tmp_path: Path) -> None:
    settings = stored(tmp_path, {"search": {"readouts": 70, "cpuct": 3.0}})
    assert settings.self_play_search == settings.search == SearchOptions(readouts=70, cpuct=3.0, solver=False)


def test_self_play_inherits_what_its_section_does_not_name(tmp_path: Path) -> None:
    settings = stored(tmp_path, {"search": {"readouts": 70, "cpuct": 3.0}, "self_play_search": GUMBEL})
    assert settings.search == SearchOptions(readouts=70, cpuct=3.0, solver=False)
    assert settings.self_play_search == SearchOptions(readouts=32, cpuct=3.0, root="gumbel", solver=False)


def test_a_plain_option_counts_for_every_search_and_a_prefixed_one_for_self_play_alone() -> None:
    settings = default_settings("connectfour")
    assert (settings.search.readouts, settings.self_play_search.readouts) == (200, 16)
    both = settings.override({"readouts": 50})
    assert (both.search.readouts, both.self_play_search.readouts) == (50, 50)
    assert both.self_play_overrides == {"root": "gumbel"}
    alone = settings.override({"self_play_readouts": 32, "self_play_solver": False})
    assert alone.search == settings.search
    assert alone.self_play_overrides == {"root": "gumbel", "readouts": 32, "solver": False}
    each = settings.override({"self_play_readouts": 5, "readouts": 50})
    assert (each.search.readouts, each.self_play_search.readouts) == (50, 5)


@pytest.mark.parametrize("option", [field.name for field in fields(SearchOptions)])
def test_every_option_of_the_search_can_differ_in_self_play(option: str) -> None:
    default = getattr(SearchOptions(), option)
    others = {
        "root": "gumbel",
        "leaf": "playout",
        "solver": False,
        "fast_wins": 0.5,
        "known_results": True,
        "turns": 2,
    }
    other = others.get(option, type(default)(default / 2) if isinstance(default, int | float) else None)
    unsolved = SearchOptions(solver=option == "solver")  # with which fast_wins goes
    settings = replace(AS_SEARCH, search=unsolved).override({f"self_play_{option}": other})
    assert settings.search == unsolved
    assert settings.self_play_search == replace(unsolved, **{option: other})
    plain = settings.override({option: default})
    assert plain.self_play_search == plain.search == unsolved


def test_the_file_holds_the_sections_and_reads_back(tmp_path: Path) -> None:
    settings = default_settings("connectfour").override({"self_play_cpuct": 2})
    content = json.loads(dump_settings(settings))
    assert list(content)[2:6] == ["network", "search", "self_play_search", "self_play"]
    assert content["self_play_search"] == {**GUMBEL, "readouts": 16, "cpuct": 2.0}
    assert len(content["search"]) == len(fields(SearchOptions))
    (tmp_path / "settings.json").write_text(dump_settings(settings))
    assert load_settings(tmp_path / "settings.json") == settings


def test_a_preset_replaces_the_search_of_self_play_too() -> None:
    deepfour = default_settings("connectfour", "deepfour")
    assert deepfour.self_play_search == deepfour.search


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"readuots": 3}, "unknown setting 'readuots': expected one of readouts, cpuct, "),
        ({"readouts": "many"}, "readouts must be int, not 'many'"),
        ({"readouts": 0}, "readouts must be at least 1, not 0"),
        ({"solver": True}, "fast_wins must be 0 with solver, which proves results, not 0.5"),
        ([], r"section 'self_play_search' must be an object, not \[\]"),
    ],
)
def test_errors_in_the_search_of_self_play_are_reported(section: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=message):
        stored(tmp_path, {"search": {"fast_wins": 0.5}, "self_play_search": section})


def test_an_option_that_went_is_accepted_with_the_value_that_the_code_has(tmp_path: Path) -> None:
    older = {"search": {"fpu": "zero", "cpuct_base": 0}, "training": {"momentum": 0.9, "steps": 3}}
    assert stored(tmp_path, older) == stored(tmp_path, {"training": {"steps": 3}})
    with pytest.raises(SettingsError, match="fpu is no longer an option: delete it; an action without a visit has"):
        stored(tmp_path, {"self_play_search": {"fpu": "parent"}})
    with pytest.raises(SettingsError, match="^momentum is no longer an option: delete it; that of sgd is 0.9$"):
        AS_SEARCH.override({"momentum": 0.9})
    for section, option in (("gate", {"momentum": 0.9}), ("training", {"fpu": "zero"}), ("search", {"max_files": 3})):
        with pytest.raises(SettingsError, match=f"unknown setting '{next(iter(option))}'"):
            stored(tmp_path, {section: option})


def test_an_option_of_earlier_versions_is_refused_with_what_to_write_instead(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as refused:
        stored(tmp_path, {"self_play": {"gumbel_readouts": 32}})
    assert str(refused.value) == (
        f"{tmp_path / 'settings.json'}: gumbel_readouts is no longer an option: delete it; where it is above 0, add "
        'the section "self_play_search": {"root": "gumbel", "readouts": 32}'
    )


def test_options_that_only_go_together_can_be_replaced_together() -> None:
    options = {"solver": False, "fast_wins": 0.5, "self_play_fast_wins": 0.0, "self_play_solver": True}
    mixed = AS_SEARCH.override(options)
    assert mixed.override({"fast_wins": 0.0}).self_play_search == SearchOptions(solver=True)
    with pytest.raises(SettingsError, match="fast_wins must be 0 with solver"):
        mixed.override({"fast_wins": 0.7})


NUMBERS = [
    name
    for name, section in OPTIONS.items()
    if section != SELF_PLAY_SEARCH and type(getattr(SECTIONS[section](), name)) in (int, float)
]


@pytest.mark.parametrize("option", NUMBERS)
def test_no_option_takes_a_number_that_is_none_or_too_large_or_too_small_to_divide_by(option: str) -> None:
    settings = AS_SEARCH
    absurd = [
        math.inf,
        -math.inf,
        math.nan,
        np.float64("nan"),
        np.float32("inf"),
        1e-310,
        1e300,
        10**31,
        10**5000,
        True,
    ]
    for value in [*absurd, None, "1", [1], np.arange(1000)]:
        with pytest.raises(SettingsError, match=f"^{option} must be ") as refused:
            settings.override({option: value})
        assert "\n" not in str(refused.value)
        assert len(str(refused.value)) < 150
    assert settings.override({option: default_of(option)}) == settings


def default_of(option: str) -> Any:
    """The default as a scalar of NumPy."""
    default = getattr(SECTIONS[OPTIONS[option]](), option)
    return np.float64(default) if isinstance(default, float) else np.int64(default)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (200_000 * "[", "is not valid JSON .it is nested too deeply.: fix it"),
        ('{"game": "tictactoe", "network":' + 200_000 * '{"a":', "is not valid JSON .it is nested too deeply.: fix it"),
        ("[]", "is not valid JSON .it is not an object.: fix it"),
        (17_000_000 * " ", "is not valid JSON .it has more than 16,777,216 bytes.: fix it"),
        ("\udcff", "is not valid JSON .*: fix it"),
        ('{"game": "tictactoe", "network": "' + 900 * "[" + '"}', "section 'network' must be an object, not '"),
        (
            '{"game": "tictactoe", "network": ' + 900 * "[" + 900 * "]" + "}",
            "section 'network' must be an object, not ",
        ),
        ('{"game": "tictactoe", "preset": ' + 900 * "[" + 900 * "]" + "}", "preset must be a name, not "),
    ],
)
def test_a_file_of_any_content_is_refused_in_a_line(content: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(content, errors="surrogateescape")
    with pytest.raises(SettingsError, match=rf"settings\.json:? {problem}") as refused:
        load_settings(path)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 150 + len(str(path))


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e400", "1e-310", "1" + 400 * "0"])
def test_a_file_with_such_a_number_is_refused(number: str, tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text(f'{{"game": "tictactoe", "search": {{"cpuct": {number}}}}}')
    with pytest.raises(SettingsError, match=r"settings\.json: cpuct must be "):
        load_settings(path)


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "mlp", "depth": 1000, "width": 16_384},
        {"kind": "resnet", "blocks": 1000, "filters": 1024},
        {"kind": "resnet", "blocks": 2, "filters": 1024, "kernel_size": 1024},
    ],
)
def test_a_network_that_no_memory_holds_is_refused_before_it_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="the network would have .* weights, but the most are 1,000,000,000: lower"):
        default_settings("tictactoe").override(options)
