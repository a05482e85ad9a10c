"""The public host's files are whole: they can't run here, so what would fail there is looked for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

_ROOT = Path(__file__).parents[2]
_GITHUB = _ROOT / ".github"
_WORKFLOWS = sorted((_GITHUB / "workflows").glob("*.yml"))
_ACTIONS = sorted((_GITHUB / "actions").glob("*/action.yml"))
_FORMS = sorted(path for path in (_GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
_TARGETS = set(re.findall(r"^([a-z]+):", (_ROOT / "Makefile").read_text(), re.MULTILINE))
#: That page is written from the code.
_COMMANDS = set(re.findall(r"^## `([a-z]+)`", (_ROOT / "docs" / "reference" / "cli.md").read_text(), re.MULTILINE))
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
#: What more than reading is for: a token that the registry trusts, and the release itself.
_RIGHTS = {("release.yml", "publish"): {"id-token": "write"}, ("release.yml", "announce"): {"contents": "write"}}

each_workflow = pytest.mark.parametrize("path", _WORKFLOWS, ids=lambda path: path.stem)


def _loaded(path: Path) -> dict[Any, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _jobs(path: Path) -> dict[str, dict[str, Any]]:
    return _loaded(path)["jobs"]


def _steps(path: Path) -> Iterator[dict[str, Any]]:
    if path in _ACTIONS:
        yield from _loaded(path)["runs"]["steps"]
        return
    for job in _jobs(path).values():
        yield from job.get("steps", ())


def _commands(path: Path) -> list[str]:
    return [step["run"] for step in _steps(path) if "run" in step]


def _made(path: Path) -> set[str]:
    return set(re.findall(r"\bmake ([a-z-]+)", "\n".join(_commands(path))))


def test_the_workflows_are_these() -> None:
    assert [path.stem for path in _WORKFLOWS] == ["nightly", "release", "test"]
    # YAML takes the word `on` for a truth.
    assert all(_loaded(path)[True] for path in _WORKFLOWS)


def test_they_call_the_targets_that_people_call() -> None:
    made = {path.stem: _made(path) for path in _WORKFLOWS}
    assert set().union(*made.values()) <= _TARGETS
    assert made["test"] == {"lint", "docs", "test"}
    assert "nightly" in made["nightly"]


@each_workflow
def test_every_job_ends_in_time_and_needs_jobs_that_are_there(path: Path) -> None:
    jobs = _jobs(path)
    for name, job in jobs.items():
        # A job that calls a workflow has the timeouts of that one's jobs, and may have none itself.
        assert ("timeout-minutes" in job) != ("uses" in job), name
        assert job.get("timeout-minutes", 0) < 360, "the host ends a job after six hours"
        needed = job.get("needs", [])
        assert ({needed} if isinstance(needed, str) else set(needed)) <= set(jobs), name


@each_workflow
def test_each_may_read_and_few_may_more(path: Path) -> None:
    workflow = _loaded(path)
    assert workflow["permissions"] in ({}, {"contents": "read"})
    for name, job in _jobs(path).items():
        own = job.get("permissions", workflow["permissions"])
        assert own == _RIGHTS.get((path.name, name), {"contents": "read"}), name


@each_workflow
def test_outdated_runs_are_cancelled_but_no_release_is(path: Path) -> None:
    concurrency = _loaded(path)["concurrency"]
    assert concurrency["group"] == f"{path.stem}-${{{{ github.ref }}}}"
    assert concurrency["cancel-in-progress"] is (path.stem != "release")


@pytest.mark.parametrize("path", [*_WORKFLOWS, *_ACTIONS], ids=lambda path: f"{path.parent.name}_{path.stem}")
def test_what_is_used_is_pinned_or_here(path: Path) -> None:
    used = [step["uses"] for step in _steps(path) if "uses" in step]
    if path in _WORKFLOWS:
        used += [job["uses"] for job in _jobs(path).values() if "uses" in job]
    assert used
    for name in used:
        if name.startswith("./"):
            assert (_ROOT / name).is_file() or (_ROOT / name / "action.yml").is_file(), name
        else:
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", name), name


@pytest.mark.parametrize("path", [*_WORKFLOWS, *_ACTIONS], ids=lambda path: f"{path.parent.name}_{path.stem}")
def test_no_secret_is_kept_and_nothing_is_pasted_into_a_command(path: Path) -> None:
    assert "secrets." not in path.read_text()
    # A branch or a title may hold a command; in a variable it stays a word.
    assert [command for command in _commands(path) if "${{" in command] == []


def test_the_site_of_each_commit_is_kept() -> None:
    *_, kept = _jobs(_GITHUB / "workflows" / "test.yml")["docs"]["steps"]
    assert kept["with"]["path"] == "build/site"
    assert "site_dir: ../build/site" in (_ROOT / ".ci" / "mkdocs.yml").read_text(encoding="utf-8")


def test_the_matrix_is_what_the_package_promises() -> None:
    matrix = _jobs(_GITHUB / "workflows" / "test.yml")["test"]["strategy"]["matrix"]
    language = "Programming Language :: Python :: "
    assert matrix["python"] == [
        name.removeprefix(language) for name in _PROJECT["classifiers"] if name.startswith(language)
    ]
    assert matrix["postgres"] == ["15", "16", "17", "18"]


def test_the_script_that_is_run_is_there() -> None:
    scripts = re.findall(r"\.ci/\S+", "\n".join(command for path in _WORKFLOWS for command in _commands(path)))
    assert scripts
    assert [name for name in scripts if not (_ROOT / name).is_file()] == []


@pytest.mark.parametrize("path", _FORMS, ids=lambda path: path.stem)
def test_a_form_asks_each_thing_once_and_names_commands_that_exist(path: Path) -> None:
    form = _loaded(path)
    assert form["name"]
    assert form["description"]
    ids = [part["id"] for part in form["body"] if part["type"] != "markdown"]
    assert len(ids) == len(set(ids))
    commands = set(re.findall(r"pgtrickle ([a-z]+)", path.read_text(encoding="utf-8")))
    assert commands
    assert commands <= _COMMANDS


def test_wrong_content_is_asked_for_its_verification() -> None:
    asked = {path.stem: {part.get("id") for part in _loaded(path)["body"]} for path in _FORMS}
    assert asked.keys() == {"bug", "feature", "wrong-content"}
    assert asked["bug"] >= {"explain", "health", "versions"}
    assert asked["wrong-content"] >= {"verify", "explain", "health", "versions"}


def test_one_address_of_the_repository_is_used_everywhere() -> None:
    address = _PROJECT["urls"]["Repository"]
    assert all(url.startswith(address) for url in _PROJECT["urls"].values())
    for path in (_GITHUB / "ISSUE_TEMPLATE" / "config.yml", _ROOT / "SECURITY.md", _ROOT / "CHANGELOG.md"):
        found = re.findall(r"https://github\.com/[\w-]+/[\w-]+", path.read_text(encoding="utf-8"))
        assert set(found) == {address}, path.name
