"""Builds the documentation as a web site: these pages, the notebooks, the cards of the models, and the docstrings.

    python docs/make_site.py --out=site

The pages lie on the site as they lie in the repository, so that relative links hold in both; a link to a module of the
library leads to its docstrings. Broken links are errors, in the pages and in the HTML that is built. What it loads is
on the site, so that it works without a network.
"""

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from nbconvert.exporters import MarkdownExporter
from nbconvert.writers import FilesWriter

import seraphim

ROOT = Path(__file__).parents[1]
FOLDERS = (".", "docs", "docs/log", "notebooks", "models/*")  # the log is on the site, but not in its menu
COPIED = ("*.md", "*.png", "*.css", "LICENSE", "CITATION.cff")
NAMED_FILE = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)  # a block of code that is the content of a file
TO_SOURCE = re.compile(r"\[([^]]*)\]\(((?:\.\./)*)(\w+)/([\w/]+)\.py\)")  # a link to a Python file
LISTED = re.compile(r"^    ([a-z_]+/?)  +(\S.*)$", re.MULTILINE)  # a module in the docstring of its folder


def docstring(path: Path) -> str:
    """Return the docstring of a module, or of a package's folder."""
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.get_docstring(ast.parse(file.read_text())) or ""


def copy_pages(pages: Path) -> None:
    """Copy what is Markdown already, and what it shows or links to."""
    for path in sorted(path for folder in FOLDERS for name in COPIED for path in ROOT.glob(f"{folder}/{name}")):
        target = pages / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            text = TO_SOURCE.sub(to_reference, path.read_text().replace(".ipynb)", ".md)"))
            target.write_text(NAMED_FILE.sub(r'```\1 title="\2"', text))
        else:
            shutil.copyfile(path, target)


def to_reference(link: re.Match[str]) -> str:
    """Return a link to the docstrings of a module of the library; for other files, which have no page, the text."""
    label, up, package, module = link.groups()
    if package != "seraphim":
        return label
    return f"[{label}]({up}reference/{module.split('/')[0]}.md#seraphim.{module.replace('/', '.')})"


def convert_notebooks(pages: Path) -> None:
    """Write each notebook, with its pictures, as a page."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        names = {"unique_key": path.stem, "output_files_dir": f"{path.stem}_files"}
        text, resources = MarkdownExporter().from_filename(str(path), resources=names)
        writer = FilesWriter(build_directory=str(pages / "notebooks"))
        writer.write(text.replace(".ipynb)", ".md)"), resources, notebook_name=path.stem)


def write_reference(pages: Path) -> Iterator[str]:
    """Write a page for the public API and one for each package or module of the library; yield their names."""
    folder = pages / "reference"
    folder.mkdir()
    options = {"show_root_heading": "false", "show_if_no_docstring": "true", "merge_init_into_class": "false"}
    write_modules(folder / "seraphim.md", ["api"], options | {"members": str(seraphim.__all__)})
    yield "seraphim"
    for name, _ in LISTED.findall(docstring(ROOT / "seraphim")):
        modules = [f"{name}.{module.rstrip('/')}" for module, _ in LISTED.findall(docstring(ROOT / "seraphim" / name))]
        if name != "api":
            options = {} if modules else {"show_root_heading": "false"}
            write_modules(folder / f"{name}.md", modules or [name], options)
            yield name


def write_modules(page: Path, modules: list[str], options: dict[str, str]) -> None:
    """Write a page of modules; mkdocstrings puts their docstrings there."""
    package = "seraphim" if page.stem == "seraphim" else f"seraphim.{page.stem}"
    chosen = "".join(f"      {name}: {value}\n" for name, value in options.items())
    blocks = [f"::: seraphim.{module}\n" + ("    options:\n" + chosen) * bool(options) for module in modules]
    page.write_text(f"# {package}\n\n" + "\n".join(blocks))


class Page(HTMLParser):
    """The links of a page, and what links may lead to in it."""

    def __init__(self, file: Path) -> None:
        """Read a file."""
        super().__init__()
        self.links, self.anchors = list[str](), set[str]()
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        """Keep a tag's links and anchors."""
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.links.append(value)
            elif value and name in ("id", "name"):
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Return the links of a built site that lead to no file or anchor of it; those to other sites are not looked at."""
    site, broken = site.resolve(), list[str]()
    pages = {file: Page(file) for file in sorted(site.rglob("*.html"))}
    for file, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            folder = site if parts.path.startswith("/") else file.parent
            target = (folder / unquote(parts.path).lstrip("/")).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            there = target.is_relative_to(site) and target.exists()
            anchors = pages[target].anchors | {""} if target in pages else {""}
            if not (parts.scheme or parts.netloc) and not (there and unquote(parts.fragment) in anchors):
                broken.append(f"{file.relative_to(site)} links to {link}, which is not on the site")
    return broken


def build(out: Path) -> None:
    """Build the site in a folder, which is replaced."""
    with tempfile.TemporaryDirectory() as made:
        pages = Path(made) / "pages"
        pages.mkdir()
        copy_pages(pages)
        convert_notebooks(pages)
        names = list(write_reference(pages))
        config = (ROOT / "docs/zensical.toml").read_text()
        entries = ", ".join(f'"reference/{name}.md"' for name in names)
        config = config.replace('"reference/"', entries).replace("ROOT", str(ROOT))
        (Path(made) / "zensical.toml").write_text(config)
        program = Path(sys.executable).with_name("zensical")
        done = subprocess.run(
            [program, "build", "--strict"],
            cwd=made,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        said, _, trace = done.stdout.partition("Traceback (most recent call last)")
        print(said if "--strict" in trace else done.stdout, end="")
        if done.returncode:
            sys.exit("make_site.py: the site was not built: fix the problems above")
        if broken := broken_links(Path(made) / "site"):
            sys.exit("\n".join([*broken, "make_site.py: the site was not built: fix these links"]))
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(Path(made) / "site", out)


def main() -> None:
    """Build the site."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="the folder to write")
    build(parser.parse_args().out)


if __name__ == "__main__":
    main()
