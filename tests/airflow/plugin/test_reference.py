"""The reference in docs/ is what the code says, or CI fails."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

_GENERATOR = Path(__file__).parents[3] / "docs" / "generate.py"


@pytest.fixture
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", _GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_not_stale(generator: ModuleType, dsn: str) -> None:
    assert generator.stale(dsn) == [], "run: python docs/generate.py"


def test_a_page_that_someone_edited_is_stale(
    generator: ModuleType, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in generator.pages(dsn).items():
        (tmp_path / name).write_text(text + ("edited" if name == "cli.md" else ""))
    monkeypatch.setattr(generator, "REFERENCE", tmp_path)
    assert generator.stale(dsn) == ["cli.md"]
    assert generator.main(["--check", "--dsn", dsn]) == 1


def test_writing_makes_it_fresh(
    generator: ModuleType, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "REFERENCE", tmp_path / "reference")
    assert generator.main(["--dsn", dsn]) == 0
    assert generator.main(["--check", "--dsn", dsn]) == 0


def test_every_sensor_and_trigger_stands_in_the_reference(generator: ModuleType) -> None:
    text = generator.operators()
    for name in (
        "StreamTableFreshnessSensor",
        "ChangeBufferSensor",
        "StreamTableRefreshedTrigger",
        "ChangesPendingTrigger",
        "AlertTrigger",
        "AlertNotifier",
        "StreamTableRefreshOperator",
    ):
        assert name in text
