"""What a cluster needs of us: the application, and the package as one zip for `--py-files`."""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from functools import cache
from importlib.resources import files
from pathlib import Path

from airflow_provider_pgtrickle.errors import EnvironmentFault

_PACKAGE = "airflow_provider_pgtrickle"
#: Parts that only Airflow's processes use; an executor has no Airflow.
_AIRFLOW_ONLY = frozenset(
    {"backends", "decorators", "factory", "hooks", "links", "notifications", "operators", "plugin", "sensors",
     "spark_apps", "triggers", "web", "demo"}
)  # fmt: skip


def application(name: str) -> Path:
    """A Spark application: inside the wheel, or beside the package in a checkout."""
    package = Path(str(files(_PACKAGE)))
    for folder in (package / "spark_apps", package.parent / "spark_apps"):
        if (folder / name).is_file():
            return folder / name
    raise EnvironmentFault(f"spark_apps/{name} is missing from the installation", remedy="Install the provider again.")


@cache
def compute_zip() -> Path:
    """The compute package as a zip named by its content, so that concurrent tasks share one and none is stale."""
    package = Path(str(files(_PACKAGE)))
    sources = sorted(
        path
        for path in package.rglob("*")
        if path.is_file()
        and path.suffix in (".py", ".sql")
        and path.relative_to(package).parts[0].removesuffix(".py") not in _AIRFLOW_ONLY
    )
    digest = hashlib.sha256()
    for path in sources:
        digest.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"pgtrickle-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise EnvironmentFault(f"{folder} belongs to somebody else", remedy="Remove it, or set TMPDIR.")
    target = folder / f"pgtrickle-{digest.hexdigest()[:16]}.zip"
    if not target.exists():
        descriptor, draft = tempfile.mkstemp(dir=folder, suffix=".zip")
        with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sources:
                archive.write(path, f"{_PACKAGE}/{path.relative_to(package)}")
        os.replace(draft, target)
    return target
