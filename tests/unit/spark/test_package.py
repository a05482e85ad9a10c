"""What a cluster gets stands on its own."""

from __future__ import annotations

import subprocess
import sys
import zipfile

from airflow_provider_pgtrickle.engine.spark.package import application, zip_package

#: Refuses Airflow to whatever is imported after it, and a checkout to Python's path.
_WITHOUT_AIRFLOW = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "airflow":
            raise ImportError(f"{name} is not on a cluster")
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, sys.argv[1])
import pkgutil, importlib
import airflow_provider_pgtrickle as package
assert sys.argv[1] in package.__file__, package.__file__
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
"""


def test_every_module_of_the_zip_imports_from_it_without_airflow(tmp_path):
    target = zip_package(tmp_path / "pgtrickle.zip")
    ran = subprocess.run(
        [sys.executable, "-c", _WITHOUT_AIRFLOW, str(target)], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


def test_the_zip_holds_the_migrations_and_is_the_same_bytes_each_time(tmp_path):
    first, second = zip_package(tmp_path / "a.zip"), zip_package(tmp_path / "b" / "b.zip")
    assert first.read_bytes() == second.read_bytes()
    names = zipfile.ZipFile(first).namelist()
    assert any(name.startswith("airflow_provider_pgtrickle/engine/catalog/migrations/0001") for name in names)
    assert not any(name.startswith("airflow_provider_pgtrickle/operators") or "__pycache__" in name for name in names)


def test_the_application_and_its_log_settings_are_found():
    assert application().name == "refresh.py"
    assert application("log4j2.properties").is_file()
