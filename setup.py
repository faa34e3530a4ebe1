"""Builds the wheel: what a clone has beside the packages goes into seraphim/shipped. All else is in setup.cfg."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

# Of those in a clone, all but backgammon, which is still weak, and the cube, which is large.
MODELS = [
    Path("models", name) for name in ("connectfour", "hex", "othello", "pig", "threes", "tictactoe", "twenty48-2x3")
]
OF_A_MODEL = ("settings.json", "README.md", "*.png", "curve.csv", "*.proof")


class BuildWithShipped(build_py):
    """Adds the models to the packages."""

    def run(self) -> None:
        """Build."""
        if self.editable_mode:
            super().run()
            return
        shutil.rmtree(self.build_lib, ignore_errors=True)  # what an earlier build left
        super().run()
        shipped = Path(self.build_lib, "seraphim", "shipped")
        copy([Path("package.json")], shipped)
        copy_models(shipped)


class SourceWithModels(sdist):
    """Adds the models to the files that MANIFEST.in names."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        """Copy the files."""
        super().make_release_tree(base_dir, files)
        copy_models(Path(base_dir))


def copy_models(out: Path) -> None:
    """Copy the models that come with Seraphim, with their champions alone, into `out / "models"`."""
    for model in MODELS:
        link = model / "champion"
        champion = str(link.readlink()) if link.is_symlink() else link.read_text()
        copy([file for pattern in OF_A_MODEL for file in model.glob(pattern)], out / model)
        shutil.copytree(model / champion, out / model / champion)
        (out / link).write_text(champion)  # wheels and source distributions have no links


def copy(files: Iterable[Path], folder: Path) -> None:
    """Copy files into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy(file, folder)


setup(cmdclass={"build_py": BuildWithShipped, "sdist": SourceWithModels})
