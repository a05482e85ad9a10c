"""The pages hold together: links lead somewhere, and what is said to be cut from a file stands in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sqlglot

ROOT = Path(__file__).parent.parent.parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_MARKED = re.compile(r"<!-- (?P<mark>[a-z][^>]*?) -->\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
#: Marks of blocks that some test looks at: `runs` here means tests/end_to_end or tests/database.
_MARKS = re.compile(r"runs( as .+)?|cut from \S+|checked (python|sql|connections)")


def _ids(pages: list[Path]) -> list[str]:
    return [str(page.relative_to(ROOT)) for page in pages]


def _anchors(page: Path) -> set[str]:
    """As code hosts make them of headings."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def _marked(mark: str) -> list[tuple[str, str]]:
    found = [
        (str(page.relative_to(ROOT)), block)
        for page in PAGES
        for block in _MARKED.finditer(page.read_text(encoding="utf-8"))
    ]
    return [(name, block["text"]) for name, block in found if re.fullmatch(mark, block["mark"])]


@pytest.mark.parametrize("page", PAGES, ids=_ids(PAGES))
def test_every_internal_link_leads_somewhere(page: Path) -> None:
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for target in _LINK.findall(text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        to = (page.parent / path).resolve() if path else page
        if not to.exists() or (anchor and anchor not in _anchors(to)):
            broken.append(target)
    assert broken == []


def test_every_decision_has_its_line_in_order() -> None:
    folder = ROOT / "docs" / "decisions"
    told = re.findall(
        r"^\| \[(\d+)\]\((\d{4}-[^)]+)\) \|", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [page for _, page in told] == sorted(page.name for page in folder.glob("0*.md"))
    assert [int(number) for number, _ in told] == [int(page[:4]) for _, page in told]


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        for target in _LINK.findall(page.read_text(encoding="utf-8")):
            to = (page.parent / target.partition("#")[0]).resolve()
            if "://" not in target and to.is_file():
                todo.append(to)
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} <= reached


def test_every_mark_is_one_that_a_test_knows() -> None:
    marks = {block["mark"] for page in PAGES for block in _MARKED.finditer(page.read_text(encoding="utf-8"))}
    assert marks
    assert [mark for mark in marks if not _MARKS.fullmatch(mark)] == []


def test_what_is_cut_from_a_file_stands_in_it() -> None:
    pages = {page: page.read_text(encoding="utf-8") for page in PAGES}
    cut = [block for text in pages.values() for block in _MARKED.finditer(text) if block["mark"].startswith("cut from")]
    assert len(cut) >= 5
    for block in cut:
        file = ROOT / block["mark"].removeprefix("cut from ")
        assert block["text"] in file.read_text(encoding="utf-8"), block["text"]


@pytest.mark.parametrize(("page", "text"), _marked("checked sql"))
def test_sql_is_sql(page: str, text: str) -> None:
    assert sqlglot.parse(text, read="postgres")


@pytest.mark.parametrize(("page", "text"), _marked("cut from .*\\.py"))
def test_a_cut_begins_and_ends_with_a_statement(page: str, text: str) -> None:
    compile(text, page, "exec")
