"""The documentation: its links, and the web site that `make docs` builds, in a browser."""

import functools
import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import ROOT, Visitor, chromium, needs_chromium
from playwright.sync_api import expect

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "docs/log/*.md", "notebooks/*.md", "models/*/*.md")
    for path in ROOT.glob(pattern)
)
BUILD = [sys.executable, "docs/make_site.py"]


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts and the site make them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_menu_has_every_page_and_model() -> None:
    menu = (ROOT / "docs/zensical.toml").read_text()
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pages = {str(page.relative_to(ROOT)) for page in PAGES} & set(tracked.split())
    notebooks = {f"notebooks/{path.stem}.md" for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert {page for page in pages | notebooks if f'"{page}"' not in menu} == {"docs/README.md", "docs/log/README.md"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", without_code(page.read_text())):
        if not re.match(r"https?:", target):
            found = page.parent / target if target else page
            assert found.exists(), target
            assert not anchor or anchor in anchors(found), f"{target}#{anchor}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run([*BUILD, f"--out={out}"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def visitor(site: Path) -> Iterator[Visitor]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with chromium() as browser:
            visitor = Visitor(browser, f"http://127.0.0.1:{server.server_port}/")
            yield visitor
            visitor.close()
        server.shutdown()


@pytest.mark.slow
def test_the_site_has_every_page_each_model_each_notebook_and_the_library(site: Path) -> None:
    for page in PAGES:
        path = page.relative_to(ROOT)
        assert (site / (path.with_name("index") if path.stem == "README" else path).with_suffix(".html")).exists(), path
    for path in ROOT.glob("notebooks/*.ipynb"):
        text = (site / "notebooks" / path.with_suffix(".html").name).read_text()
        assert text.count(f'src="{path.stem}_files/') >= 3
    assert "Return the label of the move to play" in (site / "reference/seraphim.html").read_text()
    packages = {path.parent.name for path in ROOT.glob("seraphim/*/__init__.py")}
    assert packages <= {path.stem for path in site.glob("reference/*.html")}


@pytest.mark.slow
def test_links_to_modules_lead_to_their_docstrings(site: Path) -> None:
    text = (site / "docs/your-own-search.html").read_text()
    assert 'href="../reference/search.html#seraphim.search.tree"' in text
    assert 'href="../reference/options.html#seraphim.options"' in text
    assert '.py"' not in text


@pytest.mark.parametrize(
    "link",
    [
        *(
            "gone.html",
            "../gone.html",
            "docs/page.html#gone",
            "#gone",
            "gone.png",
            "docs/",
            "/gone.css",
            "../../page.html",
        ),
        *("docs/page.html#%23here", "docs/page.html?x#gone", "seraphim/options.py"),
    ],
)
@pytest.mark.parametrize("form", ['<a href="{}">', '<img src="{}">', '<script src="{}"></script>', '<link href="{}">'])
def test_a_dead_link_in_a_built_page_is_found(tmp_path: Path, link: str, form: str) -> None:
    site = tmp_path / "site"
    (site / "docs").mkdir(parents=True)
    (tmp_path / "page.html").touch()
    good = [
        "docs/page.html",
        "docs/page.html#here",
        "/docs/page.html",
        "#top",
        "https://example.org/x",
        "mailto:a@b",
        "./",
    ]
    (site / "docs/page.html").write_text('<h2 id="here"><a href="../index.html#top">')
    (site / "index.html").write_text('<h1 id="top">' + "".join(f'<a href="{each}">' for each in good))
    broken_links = runpy.run_path(str(ROOT / "docs/make_site.py"))["broken_links"]
    assert broken_links(site) == []
    (site / "docs/other.html").write_text(form.format(link if link.startswith(("/", "#")) else f"../{link}"))
    (found,) = broken_links(site)
    assert found.startswith("docs/other.html links to ")


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize(
    "path", ["", "docs/results.html", "reference/search.html", "notebooks/your-own-game.html", "models/connectfour/"]
)
def test_a_page_loads_nothing_from_elsewhere(visitor: Visitor, path: str) -> None:
    page = visitor.open(path)
    page.wait_for_load_state("networkidle")
    expect(page.locator("h1").first).to_be_visible()
    assert visitor.trouble == []
    broken = page.evaluate("[...document.images].filter(image => !image.naturalWidth).map(image => image.src)")
    assert broken == []


@pytest.mark.slow
@needs_chromium
def test_the_search_box_finds_a_word(visitor: Visitor) -> None:
    page = visitor.open()
    page.get_by_role("button", name="Search").first.click()
    page.get_by_role("combobox", name="Search").fill("sequential halving")
    found = page.get_by_role("option").filter(has_text="Few readouts: Gumbel AlphaZero")
    found.click()
    expect(page.get_by_role("heading", name="Few readouts: Gumbel AlphaZero")).to_be_in_viewport()
    assert "/docs/search.html" in page.url
    assert visitor.trouble == []
