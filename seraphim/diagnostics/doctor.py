"""Checks of the installation, the machine's speed, models and game data, printed for a person.

Each part is printed as soon as it is known; all problems are repeated at the end.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from seraphim.diagnostics import installation
from seraphim.diagnostics.benchmark import measure_latency, measure_uniform
from seraphim.diagnostics.data_checks import Diagnosis, check_game_data, check_model
from seraphim.errors import SettingsError, how_to_install
from seraphim.game import load_game
from seraphim.inference import jax, tensorflow
from seraphim.players.model import open_model
from seraphim.settings import default_settings
from seraphim.storage.models import ModelFolder
from seraphim.storage.shipped import find_model


def self_play_rate(game: str, seconds: float = 2.0) -> float:
    """Return the readouts/s of self-play with uniform priors, in one process with 64 games: rules and search alone."""
    return measure_uniform(load_game(game), default_settings(game), 64, seconds)


def search_milliseconds(folder: ModelFolder) -> float:
    """Return the milliseconds of one search of 800 readouts by a model."""
    model = open_model(folder, folder.champion(), folder.settings())
    return measure_latency(model.game, model.inference, model.settings.search)


def check_installation(console: Console, require_gpu: bool) -> list[str]:
    """Print what is installed on which machine; return the problems."""
    print_facts(console, "machine", installation.machine())
    table = Table("package", "version", "needed for", title="packages", title_justify="left", box=None)
    problems, missing = [], {}
    for package in installation.packages():
        if package.version is None:
            missing[package.needed_for] = how_to_install(package.needed_for.removeprefix(installation.CORE))
        table.add_row(package.name, package.version or "[yellow]missing[/]", package.needed_for)
    console.print(table)
    for needed_for, command in missing.items():
        if needed_for == installation.CORE:
            problems.append(f"packages that every program needs are missing: {command}")
        console.print(Text(f"missing for {needed_for}: {command}", style="yellow"))
    found = installation.gpus()
    is_used = bool(found) and (tensorflow.sees_gpu() or jax.sees_gpu())
    if unused := installation.unused_gpu(found, is_used):
        problems.append(unused)
    elif require_gpu and not is_used:
        problems.append("no GPU is used, because the system finds none: check the driver")
    return problems


def check_folders(console: Console, root: Path, names: Sequence[str], thorough: bool, trust: bool = False) -> list[str]:
    """Print the state of some models below `root`, by default all, and of their game data; return the problems.

    A thorough check reads every file completely, and compares the checksums; with `trust`, models may be links to
    folders elsewhere.

    Raises:
        SettingsError: one of `names` is not valid.
    """
    problems = []
    for name in names or _all_names(root):
        try:
            folder = find_model(root, name, trust)
        except SettingsError as error:
            if names:
                raise
            problems.append(str(error))
            continue
        with console.status(f"{name}: reading files"):
            if not folder.path.is_dir() and not names:
                diagnosis = Diagnosis({"model": "none of this name: these are games without a model"})
                check_game_data(folder.game_data, thorough, diagnosis)
            else:
                existing = next(path for path in (folder.path, *folder.path.parents) if path.exists())
                diagnosis = check_model(folder, shutil.disk_usage(existing).free, thorough)
        print_facts(console, name, diagnosis.facts)
        problems += diagnosis.problems
    return problems


def conclude(console: Console, problems: Sequence[str]) -> int:
    """Print the problems and how many there are; return the exit code."""
    for problem in problems:
        console.print(Text(problem, style="bold red"))
    count = len(problems)
    console.print("no problem found" if not count else f"{count} problem{'s' if count > 1 else ''} found")
    return 1 if count else 0


def print_facts(console: Console, title: str, facts: Mapping[str, str]) -> None:
    """Print a table of facts."""
    table = Table(title=Text(f"\n{title}"), title_justify="left", box=None, show_header=False)
    for name, fact in facts.items():
        table.add_row(Text(name), Text(fact))
    console.print(table)


def _all_names(root: Path) -> list[str]:
    folders = [path for kind in ("models", "gamedata") for path in (root / kind).glob("*")]
    return sorted({path.name for path in folders if path.is_dir() and not path.name.startswith(".")})
