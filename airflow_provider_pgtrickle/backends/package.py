"""The zip for `--py-files`, made once for all tasks of a machine."""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path

from airflow_provider_pgtrickle.engine.errors import EnvironmentFault
from airflow_provider_pgtrickle.engine.spark.package import zip_package


@cache
def compute_zip() -> Path:
    """The compute package, named by its content: concurrent tasks share one, and none is stale."""
    folder = Path(tempfile.gettempdir()) / f"pgtrickle-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise EnvironmentFault(f"{folder} belongs to somebody else", remedy="Remove it, or set TMPDIR.")
    descriptor, name = tempfile.mkstemp(dir=folder, suffix=".zip")
    os.close(descriptor)
    draft = zip_package(Path(name))
    # The same bytes wherever they are built, so whoever comes last replaces a file by itself.
    target = folder / f"pgtrickle-{hashlib.sha256(draft.read_bytes()).hexdigest()[:16]}.zip"
    return draft.replace(target)
