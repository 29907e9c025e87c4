"""The documentation is true: its topologies are valid, its code compiles, its links and paths exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from penstock.cli.loading import checked
from penstock.connectors.registry import catalogue
from penstock.topology.model import Topology
from penstock.topology.problems import Problem
from penstock.topology.yaml_reader import read_topology_text
from penstock.validation import validate

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")])

_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_WHOLE_TOPOLOGY = re.compile(r"^topology:", re.MULTILINE)
_FILE_NAME = re.compile(r"# (\w+\.py)\n")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_SUBMITTED = re.compile(r"^    penstock submit (examples/(?:[^\n\\]|\\\n)+)$", re.MULTILINE)
_PATH = re.compile(r"`((?:src|tests|tools|docs|examples)/[\w./-]*)`")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    language: str
    body: str
    line: int

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(language: str) -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            if match["language"] == language:
                yield Block(page, language, match["body"], text.count("\n", 0, match.start()) + 2)


TOPOLOGIES = [block for block in blocks("yaml") if _WHOLE_TOPOLOGY.search(block.body)]
"""A YAML block is a whole topology when it has the key `topology`."""


def code_beside(block: Block, folder: Path) -> None:
    """Write the page's Python blocks that begin with `# name.py`, and an example's own modules."""
    for other in blocks("python"):
        named = _FILE_NAME.match(other.body)
        if other.page == block.page and named:
            (folder / named[1]).write_text(other.body, encoding="utf-8")
    if block.page == ROOT / "README.md":
        for module in (ROOT / "examples" / "url-reach").glob("*.py"):
            (folder / module.name).write_text(module.read_text(encoding="utf-8"), encoding="utf-8")


def read(block: Block, folder: Path) -> tuple[Topology | None, list[Problem]]:
    code_beside(block, folder)
    topology, problems = read_topology_text(block.body, str(block), folder, catalogue(), {})
    return topology, [*problems, *(validate(topology, catalogue()) if topology else ())]


@pytest.mark.parametrize("block", TOPOLOGIES, ids=str)
def test_every_topology_in_the_docs_is_valid(block: Block, tmp_path: Path) -> None:
    topology, problems = read(block, tmp_path)
    assert [str(problem) for problem in problems] == []
    assert topology is not None


def submitted() -> set[str]:
    """What the pages have people submit from the examples, with its options."""
    return {match[1].replace("\\\n", " ") for page in PAGES for match in _SUBMITTED.finditer(page.read_text("utf-8"))}


def test_the_show_of_the_console_is_in_the_docs() -> None:
    assert "examples/word-count/topology.yaml --set replicas=2" in submitted()
    console = (ROOT / "docs/console.md").read_text("utf-8")
    (show,) = (match[1] for match in _SUBMITTED.finditer(console))
    # Else its input is done before anybody has looked: see STEADY in tests/system/test_console_page.py.
    for lasting in ("replicas=2", "sources.sentences.with.count=10000000", "epoch.max_tuples=100", "epoch.interval=2s"):
        assert f"--set {lasting}" in show


@pytest.mark.parametrize("line", sorted(submitted()))
def test_what_the_docs_have_people_submit_is_valid(line: str) -> None:
    file, *options = shlex.split(line)
    assert set(options[::2]) <= {"--set"}
    _, problems = checked(ROOT / file, options[1::2])
    assert [str(problem) for problem in problems] == []


def test_a_wrong_topology_in_the_docs_would_be_noticed(tmp_path: Path) -> None:
    wrong = TOPOLOGIES[0].body.replace("from: ", "from: not-")
    _, problems = read(Block(ROOT / "CHANGELOG.md", "yaml", wrong, 1), tmp_path)
    assert problems


def test_the_readme_shows_the_example_as_it_is() -> None:
    (shown,) = [block.body for block in TOPOLOGIES if block.page == ROOT / "README.md"]
    assert shown in (ROOT / "examples/url-reach/topology.yaml").read_text(encoding="utf-8")


def test_getting_started_shows_what_init_makes() -> None:
    template = (ROOT / "src/penstock/cli/template/topology.yaml").read_text(encoding="utf-8")
    (shown,) = [block.body for block in TOPOLOGIES if block.page.name == "getting-started.md"]
    assert shown in template


@pytest.mark.parametrize("block", list(blocks("python")), ids=str)
def test_every_python_block_compiles(block: Block) -> None:
    compile(block.body, str(block), "exec")


def anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    return {anchor(heading) for heading in _HEADING.findall(page.read_text(encoding="utf-8"))}


def broken_links(page: Path) -> list[str]:
    broken = []
    for link in _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"\w+:", link):
            continue
        path, _, fragment = link.partition("#")
        target = (page.parent / path) if path else page
        if not target.exists() or (fragment and fragment not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page) == []


def test_a_link_to_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n[a](gone.md) [b](#one) [c](#two) [d](page.md#one) [e](https://example.org)\n")
    assert broken_links(page) == ["gone.md", "#two"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    named = _PATH.findall(page.read_text(encoding="utf-8"))
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_architecture_names_every_package() -> None:
    text = (ROOT / "docs/contributing/architecture.md").read_text(encoding="utf-8")
    packages = [path.parent.name for path in (ROOT / "src/penstock").glob("*/__init__.py")]
    assert packages
    assert [name for name in packages if f"`src/penstock/{name}/`" not in text] == []


def test_every_page_of_the_docs_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        links = (link.partition("#")[0] for link in _LINK.findall(page.read_text(encoding="utf-8")))
        waiting += [(page.parent / link).resolve() for link in links if link and not re.match(r"\w+:", link)]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in seen] == []


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_reference", ROOT / "tools" / "write_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_tool_writes() -> None:
    written = load_tool().reference_pages()
    found = {page.name: page.read_text(encoding="utf-8") for page in (ROOT / "docs/reference").glob("*.md")}
    assert found == written, "run `make docs`"


def test_the_readme_names_every_command() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    reference = load_tool().reference_pages()["cli.md"]
    commands = re.findall(r"^## (\S+)$", reference, re.MULTILINE)
    assert commands
    assert [name for name in commands if f"| `penstock {name}` |" not in readme] == []
