"""When an option has an effect: which parts of a run read it, and which other options it needs.

A flag without an effect is refused, so that nobody believes it changed the run. In `settings.json` an option may be
without effect, because the file has all of them.
"""

import functools
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any, get_type_hints

from seraphim.game import load_features
from seraphim.options import Needs, Options, Part, ReadBy, SearchOptions
from seraphim.settings import OPTIONS, PREFIX, SECTIONS, SELF_PLAY_SEARCH, Settings


@functools.cache
def _conditions(option: str) -> tuple[ReadBy, Needs]:
    # What reads an option, and what it needs, as they stand at the option.
    kind: Any = SECTIONS[OPTIONS[option]]
    stated = getattr(get_type_hints(kind, include_extras=True)[option], "__metadata__", ())
    read_by = [each for each in stated if isinstance(each, ReadBy)]
    needs = [each for each in stated if isinstance(each, Needs)]
    return [*read_by, kind.read_by][0], [*needs, Needs()][0]


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
    return not _conditions(option)[0].parts.isdisjoint(parts)


def unmet_needs(option: str, section: Options) -> str:
    """Return in words what an option needs of others of its section to have an effect; nothing if they are so."""
    needs = _conditions(option)[1]
    return "" if needs.hold(section) else str(needs)


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
    read_by, needs = _conditions(option)
    reading = read_by.parts.intersection(parts)
    if option == "readouts_growth_steps" and settings.self_play_search.by_turns:
        return "a search with readouts in self-play: root=puct or gumbel"
    if section == "search":
        if PREFIX + option in given:
            reading -= {"self_play"}
        read = list(_searches(settings, reading))
    else:
        read = [getattr(settings, section)] if reading else []
    words = " with ".join(filter(None, (read_by.words, str(needs))))
    return "" if any(needs.hold(each) for each in read) else words


def _searches(settings: Settings, parts: Collection[Part]) -> Iterator[SearchOptions]:
    # The options of the searches that some parts of a run make.
    for part in parts:
        if part == "self_play":
            yield settings.self_play_search
        elif part.startswith("analysis"):
            yield settings.search if settings.search.by_turns else replace(settings.search, root="puct")
        elif (part != "gate" or settings.gate.gate != "off") and (part != "checks" or has_checks(settings.game)):
            yield settings.search
