"""A connection string travels to Spark's Python tasks inside a pickled function.

No plan, UI or event log shows what a function holds, but for one: if a session ends before its last execution is
released, a Connect server logs the whole plan with the function's bytes. So the string travels there in two halves:
random bytes in a file of the session, and in the function what they hide. Neither says anything without the other.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from psycopg.conninfo import conninfo_to_dict

from airflow_provider_pgtrickle.engine.spark.session import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: What each session was sent, by connection string.
_SENT: WeakKeyDictionary[SparkSession, dict[str, tuple[str, bytes]]] = WeakKeyDictionary()


def sent(spark: SparkSession, dsn: str) -> Callable[[], str]:
    """What a task calls for the connection string. It uses nothing of this package."""
    if not is_connect(spark) or "password" not in conninfo_to_dict(dsn):
        return lambda: dsn
    pad_file, hidden = _halves(spark, dsn)

    def joined() -> str:
        from pyspark import SparkFiles

        with open(SparkFiles.get(pad_file), "rb") as pad:
            return bytes(a ^ b for a, b in zip(hidden, pad.read(), strict=True)).decode()

    return joined


def _halves(spark: SparkSession, dsn: str) -> tuple[str, bytes]:
    """The name of the file that holds one half of the connection string in this session, and the other half."""
    known = _SENT.setdefault(spark, {})
    if dsn not in known:
        text = dsn.encode()
        pad = secrets.token_bytes(len(text))
        with tempfile.TemporaryDirectory(prefix="pgtrickle-") as folder:
            file = Path(folder) / f"pgtrickle-{secrets.token_hex(8)}"
            file.write_bytes(pad)
            spark.addArtifacts(str(file), file=True)
        known[dsn] = file.name, bytes(a ^ b for a, b in zip(text, pad, strict=True))
    return known[dsn]
