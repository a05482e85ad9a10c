"""What a cluster gets: the application, its log settings, and the engine as a zip, which imports no Airflow."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

from airflow_provider_pgtrickle.engine.errors import EnvironmentFault

_ENGINE = Path(__file__).parent.parent
_PACKAGE = _ENGINE.parent
_SUFFIXES = {".py", ".sql"}
#: With a fixed date the zip of one version has the same bytes wherever and whenever it is built.
_EPOCH = (1980, 1, 1, 0, 0, 0)


def zip_package(target: Path) -> Path:
    """Write the zip for `--py-files` to `target`, and return it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(_modules()):
            entry = zipfile.ZipInfo(path.relative_to(_PACKAGE.parent).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())
    return target


def application(name: str = "refresh.py") -> Path:
    """A file of `spark_apps/`: inside the package where it is installed, beside it in a checkout."""
    for folder in (_PACKAGE / "spark_apps", _PACKAGE.parent / "spark_apps"):
        if (folder / name).is_file():
            return folder / name
    raise EnvironmentFault(
        f"The Spark application {name} is missing", remedy="Install airflow-provider-pgtrickle anew."
    )


def _modules() -> Iterator[Path]:
    yield _PACKAGE / "__init__.py"
    yield from (file for file in _ENGINE.rglob("*") if file.suffix in _SUFFIXES)
