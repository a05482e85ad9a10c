"""The wheel, built from this tree and installed into an empty environment, is the whole product."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.servers import POSTGRES_15

ROOT = Path(__file__).parent.parent.parent
PROJECT = ROOT / "airflow_provider_pgtrickle" / "cli" / "first_project"
UV = shutil.which("uv")

# All of the provider's dependencies are installed once; a cold cache downloads some 700 MB.
pytestmark = pytest.mark.timeout(900)


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """The command's output; its failure shows what it said."""
    # Neither this checkout nor this run's Airflow may leak into the empty environment.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "AIRFLOW", "SPARK"))}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=inherited | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    if UV:
        run(UV, "build", "--wheel", "--quiet", "--out-dir", folder, ROOT, cwd=folder)
    else:
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The `bin` folder of an environment that holds the wheel and what it asks for, nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    # The locked versions, so that a release of somebody else's can't break this test.
    locked = ROOT / "requirements.lock"
    if UV:
        run(UV, "venv", "--quiet", "--python", sys.executable, folder / "venv", cwd=folder)
        python = folder / "venv" / "bin" / "python"
        install: list[str | Path] = [UV, "pip", "install", "--quiet", "--python", python, "-c", locked, wheel]
        try:
            # What set-up brought is in uv's cache; asking the registry about each package takes a minute.
            run(*install, "--offline", cwd=folder)
        except AssertionError:
            run(*install, cwd=folder)
    else:
        run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
        run(folder / "venv" / "bin" / "python", "-m", "pip", "install", "--quiet", "-c", locked, wheel, cwd=folder)
    yield folder / "venv" / "bin"
    # A gigabyte that pytest would keep for three runs.
    shutil.rmtree(folder)


def test_the_wheel_holds_applications_migrations_and_licence(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "airflow_provider_pgtrickle/spark_apps/refresh.py" in names
    migrations = {path.name for path in (ROOT / "airflow_provider_pgtrickle/engine/catalog/migrations").glob("*.sql")}
    assert migrations
    packed = {Path(n).name for n in names if n.startswith("airflow_provider_pgtrickle/engine/catalog/migrations/")}
    assert migrations <= packed
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names if "dist-info" not in name} == {"airflow_provider_pgtrickle"}


def test_the_wheel_holds_the_examples_and_the_dbt_package(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    examples = {str(path.relative_to(ROOT / "dags")) for path in (ROOT / "dags").rglob("*.*") if path.suffix != ".pyc"}
    # Its queries and its data are the tests'.
    examples.remove("tpch.py")
    assert examples
    assert {f"airflow_provider_pgtrickle/example_dags/{name}" for name in examples} <= set(names)
    assert "airflow_provider_pgtrickle/demo/shop.sql" in names
    assert "airflow_provider_pgtrickle/dbt_pgtrickle/dbt_project.yml" in names
    assert "airflow_provider_pgtrickle/dbt_pgtrickle/macros/stream_table.sql" in names


def test_the_description_has_links_that_work_anywhere(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (metadata,) = [name for name in archive.namelist() if name.endswith("dist-info/METADATA")]
    text = archive.read(metadata).decode()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 20
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    version = re.search(r"^Version: (.*)$", text, re.MULTILINE)
    assert version is not None
    place = f"https://github.com/airflow-provider-pgtrickle/airflow-provider-pgtrickle/blob/v{version[1]}/"
    for link in links:
        if link.startswith(place):
            assert (ROOT / link.removeprefix(place).partition("#")[0]).is_file(), link


def test_it_imports_from_where_it_was_installed(environment: Path, tmp_path: Path) -> None:
    program = (
        "import airflow_provider_pgtrickle as p, airflow_provider_pgtrickle.client;"
        "from airflow_provider_pgtrickle import StreamTable, StreamTableGraph; print(p.__file__)"
    )
    printed = run(environment / "python", "-c", program, cwd=tmp_path, AIRFLOW_HOME=str(tmp_path)).splitlines()
    assert printed[-1].startswith(str(environment.parent))


def test_the_command_answers(environment: Path, tmp_path: Path) -> None:
    assert "refresh" in run(environment / "pgtrickle", "--help", cwd=tmp_path)


def test_airflow_discovers_the_provider_and_its_plugin(environment: Path, tmp_path: Path) -> None:
    def airflow(*arguments: str) -> str:
        return run(environment / "airflow", *arguments, "--output", "plain", cwd=tmp_path, AIRFLOW_HOME=str(tmp_path))

    assert "airflow-provider-pgtrickle" in airflow("providers", "list")
    assert "pgtrickle" in airflow("providers", "hooks")
    assert "pgtrickle" in airflow("plugins")


def test_the_migrations_apply_from_the_wheel(environment: Path, tmp_path: Path, dsn: str) -> None:
    run(environment / "pgtrickle", "install", cwd=tmp_path, PGTRICKLE_DSN=dsn)
    assert run(environment / "pgtrickle", "status", cwd=tmp_path, PGTRICKLE_DSN=dsn) is not None


@pytest.mark.spark
def test_the_first_project_runs_on_spark_as_its_readme_says(environment: Path, tmp_path: Path, dsn: str) -> None:
    run(environment / "pgtrickle", "init", "shop", "--dsn", dsn, cwd=tmp_path)
    folder = tmp_path / "shop"
    declared = folder / "dags" / "stream_tables.py"
    text = declared.read_text()
    assert text.count('placement="auto",') == 1
    declared.write_text(text.replace('placement="auto",', ""))
    (commands,) = re.findall(r"```bash\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    # A reader types his own password, which the README leaves out.
    commands = re.sub(r"PGTRICKLE_DSN=\S+", f"PGTRICKLE_DSN={dsn}", commands)
    told = run("bash", "-euc", commands, cwd=folder, PATH=f"{environment}:{os.environ['PATH']}")
    status = {line.split()[0]: line.split() for line in told.splitlines() if line.startswith("public.")}
    assert set(status) == {"public.order_totals", "public.best_customers"}
    assert {row[1] for row in status.values()} == {"ACTIVE"}
    assert {row[5] for row in status.values()} & {"FULL"}
    assert {row["way"] for row in _history(environment, dsn)} <= {"pushed", "lowered", "sliced"}


def test_the_first_project_says_what_the_page_says() -> None:
    """So that its commands are run by whoever walks the page."""
    (own,) = re.findall(r"```bash\n(.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)
    page = (ROOT / "docs" / "start.md").read_text()
    _, *commands = own.splitlines()
    assert commands
    assert [line for line in commands if line not in page.splitlines()] == []


@pytest.fixture
def no_java(tmp_path: Path) -> dict[str, str]:
    """The environment of somebody who has psql, and no other program that these pages don't install."""
    bare = tmp_path / "programs"
    bare.mkdir()
    for program in ("bash", "env"):
        (bare / program).symlink_to(str(shutil.which(program)))
    # Debian's own is a script that needs Perl.
    (bare / "psql").symlink_to(POSTGRES_15 / "psql")
    return {"PATH": str(bare), "JAVA_HOME": ""}


@pytest.mark.parametrize(("page", "table"), [("first-table", "revenue"), ("start", "order_totals")])
def test_a_reader_who_has_only_the_wheel_can_begin_without_java(
    environment: Path, tmp_path: Path, dsn: str, no_java: dict[str, str], page: str, table: str
) -> None:
    _walk(page, environment, tmp_path, dsn, **no_java)
    done = [(row["action"], row["status"], row["way"]) for row in _history(environment, dsn, table)]
    assert done == [("DIFFERENTIAL", "COMPLETED", "database"), ("FULL", "COMPLETED", "database")]


@pytest.mark.usefixtures("spark_alone")
def test_a_reader_who_has_only_the_wheel_can_follow_the_tutorial(environment: Path, tmp_path: Path, dsn: str) -> None:
    # As its first section says.
    program = "import airflow_provider_pgtrickle.demo as d; print(d.__path__[0])"
    told = run(environment / "python", "-c", program, cwd=tmp_path)
    with psycopg.connect(dsn, autocommit=True) as database:
        database.execute((Path(told.strip()) / "shop.sql").read_bytes())
    _walk("tutorial", environment, tmp_path, dsn)


def _walk(page: str, environment: Path, folder: Path, dsn: str, **given: str) -> None:
    walker = shutil.copy(ROOT / "tests" / "end_to_end" / "walk.py", folder)
    run(environment / "python", walker, ROOT / "docs" / f"{page}.md", cwd=folder, PGTRICKLE_DSN=dsn, **given)


def _history(environment: Path, dsn: str, table: str = "order_totals") -> list[dict[str, Any]]:
    """Newest first."""
    command = (environment / "pgtrickle", "history", table, "--json")
    told: list[dict[str, Any]] = json.loads(run(*command, cwd=environment, PGTRICKLE_DSN=dsn))
    return told
