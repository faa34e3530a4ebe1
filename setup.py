"""Builds the wheel: what a clone has beside the packages goes into seraphim/shipped. All else is in setup.cfg."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

MODELS = ("connectfour", "tictactoe")
OF_A_MODEL = ("settings.json", "README.md", "curve.csv", "*.proof")


class BuildWithShipped(build_py):
    """Adds the programs, and the champions of the models that come with Seraphim."""

    def run(self) -> None:
        """Build."""
        super().run()
        if self.editable_mode:
            return
        shipped = Path(self.build_lib, "seraphim", "shipped")
        shutil.rmtree(shipped, ignore_errors=True)
        copy([Path("package.json")], shipped)
        copy(Path("bin").glob("*.py"), shipped / "bin")
        for model in (Path("models", name) for name in MODELS):
            there = shipped / model
            copy([file for pattern in OF_A_MODEL for file in model.glob(pattern)], there)
            snapshot = champion(model)
            shutil.copytree(model / snapshot, there / snapshot)
            (there / "champion").write_text(snapshot)  # a wheel has no links


def copy(files: Iterable[Path], folder: Path) -> None:
    """Copy files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, folder)


def champion(model: Path) -> str:
    """Return the name of a model's champion; a source distribution has that one alone, and no link to it."""
    link = model / "champion"
    return str(link.readlink()) if link.is_symlink() else max(path.name for path in model.glob("[0-9]*"))


setup(cmdclass={"build_py": BuildWithShipped})
