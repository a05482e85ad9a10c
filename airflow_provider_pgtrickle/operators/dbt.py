"""Runs dbt's tests over what was refreshed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowException

from airflow_provider_pgtrickle.engine.errors import redact

if TYPE_CHECKING:
    from airflow.sdk import Context


class DbtTestOperator(BaseOperator):
    """Runs `dbt test` for models, with the project's own profile, and fails if a test does.

    :param dbt: the program; best that of an environment of its own, because dbt's packages and Airflow's don't agree
    :param project_dir: the dbt project
    :param models: the names of the models to test
    :param env: environment variables for it, beside those of the task
    """

    template_fields: Sequence[str] = ("dbt", "project_dir", "models", "env")
    ui_color = "#ffe5d0"

    def __init__(
        self, *, dbt: str, project_dir: str, models: Sequence[str], env: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.dbt = dbt
        self.project_dir = project_dir
        self.models = list(models)
        self.env = dict(env or {})
        self._process: subprocess.Popen[str] | None = None

    def execute(self, context: Context) -> None:
        command = [self.dbt, "--no-use-colors", "test", "--project-dir", self.project_dir, "--select", *self.models]
        try:
            self._process = subprocess.Popen(
                command,
                cwd=self.project_dir,
                env={**os.environ, **self.env},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        except OSError as error:
            raise AirflowException(f"{self.dbt} can't be run: {error.strerror}. Give the path of dbt.") from None
        assert self._process.stdout is not None
        with self._process as process, self._process.stdout as told:
            for line in told:
                self.log.info("%s", redact(line.rstrip()))
        if process.returncode:
            raise AirflowException(f"dbt test failed (exit code {process.returncode}); its log is above")

    def on_kill(self) -> None:
        if self._process is not None:
            self._process.terminate()
