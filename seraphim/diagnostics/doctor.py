"""Tells a person whether everything is as it should be: the installation, the machine's speed, models and game data.

Each part is printed as soon as it is known; what has to be cured is repeated at the end.
"""

import shutil
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from seraphim.diagnostics import installation
from seraphim.diagnostics.benchmark import measure_latency, measure_uniform
from seraphim.diagnostics.data_checks import Diagnosis, check_game_data, check_model, number_of_looks
from seraphim.game import load_game
from seraphim.inference import load_inference, tensorflow
from seraphim.search.analysis import LEAVES
from seraphim.settings import default_settings
from seraphim.storage.models import ModelFolder

_ROUNDS, _GAMES = 3, 64  # of a measurement


class Figure(NamedTuple):
    """A figure of this machine that is measured in seconds."""

    name: str
    unit: str
    measure: Callable[[], float]


def rules_and_search(name: str, game: str, seconds: float = 2.0) -> Figure:
    """Return the figure of self-play with uniform priors, which takes rules and search alone."""

    def measure() -> float:
        settings, rules = default_settings(game), load_game(game)
        return statistics.median(measure_uniform(rules, settings, _GAMES, seconds / _ROUNDS) for _ in range(_ROUNDS))

    return Figure(name, "readouts/s", measure)


def one_search(name: str, folder: ModelFolder) -> Figure:
    """Return the figure of one search by a model."""

    def measure() -> float:
        settings = folder.settings()
        game = load_game(settings.game)
        return measure_latency(game, load_inference(folder.champion().path, game, batch=LEAVES), settings.search)

    return Figure(name, "ms", measure)


def check_installation(console: Console, require_gpu: bool) -> list[str]:
    """Print what is installed on which machine; return the problems."""
    console.print(_facts("machine", installation.machine()))
    table = Table("package", "version", "needed for", title="packages", title_justify="left", box=None)
    problems, missing = [], {}
    for package in installation.packages():
        state = package.version or "missing"
        if package.broken:
            state, problem = f"{package.version}, but broken", f"{package.name} is installed, but cannot be imported"
            problems.append(f"{problem}: pip install --force-reinstall {package.name}")
        elif package.version is None:
            missing[package.needed_for] = installation.how_to_install(package.needed_for)
        table.add_row(package.name, Text(state, "" if package.usable else "yellow"), package.needed_for)
    console.print(table)
    for needed_for, command in missing.items():
        if needed_for == installation.CORE:
            problems.append(f"what every program needs is not all there: {command}")
        console.print(Text(f"missing for {needed_for}: {command}", style="yellow"))
    found = installation.gpus()
    usable = bool(found) and tensorflow.sees_gpu()
    if unused := installation.unused_gpu(found, usable):
        problems.append(unused)
    elif require_gpu and not usable:
        problems.append("no GPU is used, because there is none that the system knows: look at its driver")
    return problems


def print_speed(console: Console, figures: Sequence[Figure]) -> None:
    """Measure and print the figures; how fast a machine is, is no problem."""
    console.print(_facts("speed", {figure.name: f"{figure.measure():,.0f} {figure.unit}" for figure in figures}))


def check_folders(console: Console, root: Path, names: Sequence[str], thorough: bool) -> list[str]:
    """Print the state of models and their game data; return the problems.

    Args:
        console: where to print.
        root: the folder that holds `models/` and `gamedata/`.
        names: of the models; none: all that have a folder in one of them.
        thorough: read every file whole, and compare the checksums.

    Raises:
        SettingsError: a name is none of a model.
    """
    problems = []
    for name in names or _all_names(root):
        folder = ModelFolder(root, name)
        with Progress(
            TextColumn("[progress.description]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as progress:
            task = progress.add_task(f"{name}: files", total=number_of_looks(folder))

            def looked() -> None:
                progress.advance(task)  # noqa: B023  # called in this turn of the loop

            if not folder.path.is_dir() and not names:
                report = Diagnosis({"model": "none of this name: these are games without a model"})
                check_game_data(folder.game_data, thorough, report, looked)
            else:
                report = check_model(folder, shutil.disk_usage(_existing(folder.path)).free, thorough, looked)
        console.print(_facts(name, report.facts))
        problems += report.problems
    return problems


def conclude(console: Console, problems: Sequence[str]) -> int:
    """Print the problems and how many there are; return the exit code."""
    for problem in problems:
        console.print(Text(problem, style="bold red"))
    count = len(problems)
    console.print("no problem found" if not count else f"{count} problem{'s' if count > 1 else ''} found")
    return 1 if count else 0


def _facts(title: str, facts: dict[str, str]) -> Table:
    table = Table(title=Text(f"\n{title}"), title_justify="left", box=None, show_header=False)
    for name, fact in facts.items():
        table.add_row(Text(name), Text(fact))
    return table


def _all_names(root: Path) -> list[str]:
    folders = [path for kind in ("models", "gamedata") for path in (root / kind).glob("*")]
    return sorted({path.name for path in folders if path.is_dir() and not path.name.startswith(".")})


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path
