"""The recipes of docs/recipes.md run with the real programs, which `npm run verify -- recipes` installs."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from guides import ROOT, blocks, run

import holdfast

PAGE = "docs/recipes.md"
SPARK, HELD, RELEASED = (code for _, code in blocks(PAGE))


# Spark closes its sockets only when it is stopped.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """A session on this machine."""
    sql = pytest.importorskip("pyspark.sql")
    session = sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def names(spark: Any, tmp_path: Path) -> dict[str, Any]:
    """The variables of the recipe, with a source of 100 rows."""
    from pyspark.sql.functions import lit

    source, target = str(tmp_path / "source"), str(tmp_path / "target")
    spark.range(100).write.parquet(source)
    return {"spark": spark, "lit": lit, "source": source, "target": target}


@pytest.mark.timeout(180)
def test_the_driver_writes_under_the_fence(names: dict[str, Any], namespace: str) -> None:
    run(PAGE, SPARK, names)
    rows = names["spark"].read.parquet(names["target"])
    assert rows.count() == 100
    assert [row.fence for row in rows.select("fence").distinct().collect()] == [names["lease"].fence]


@pytest.mark.timeout(180)
def test_a_lost_lease_stops_the_job(names: dict[str, Any], namespace: str) -> None:
    from pyspark.sql.functions import udf

    slowly = udf(lambda row: time.sleep(0.5) or row, "long")
    parquet = names["spark"].read.parquet

    class Reader:
        def parquet(self, path: str) -> Any:
            return parquet(path).withColumn("id", slowly("id"))

    class Spark:
        read = Reader()
        stop = names["spark"].stop

    def break_it() -> None:
        client = holdfast.client()
        while not Path(names["target"], "_temporary").exists():
            time.sleep(0.1)
        client.break_lease(key="orders/rebuild", fence=client.read_leases(key="orders/rebuild")["fence"], wait=True)

    breaker = threading.Thread(target=break_it)
    breaker.start()
    with pytest.raises(Exception, match="SparkContext was shut down"):
        run(PAGE, SPARK.replace("wait=3600", "wait=3600, ttl=3"), {**names, "spark": Spark})
    breaker.join()
    assert not Path(names["target"], "_SUCCESS").exists()


def test_dbt_builds_under_a_lease(tmp_path: Path, namespace: str) -> None:
    pytest.importorskip("dbt.adapters.duckdb")
    files = {
        "dbt_project.yml": "name: analytics\nversion: '1.0'\nprofile: local\nmodel-paths: [models]\n",
        "profiles.yml": f"local:\n  target: dev\n  outputs:\n    dev: {{type: duckdb, path: '{tmp_path}/db'}}\n",
        "models/orders.sql": "select 1 as id, {{ env_var('HOLDFAST_FENCE') }} as fence",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    page = (ROOT / PAGE).read_text()
    [line] = [line for line in page.splitlines() if line.endswith("-- dbt build")]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "clients/python/src"), "DO_NOT_TRACK": "1"}
    subprocess.run(line, shell=True, check=True, cwd=tmp_path, env=env, timeout=100)
    import duckdb

    [(ident, fence)] = duckdb.connect(str(tmp_path / "db")).execute("select id, fence from orders").fetchall()
    assert ident == 1
    assert fence > 0
    assert holdfast.client().read_leases(key="dbt/analytics")["state"] == "released"


def test_the_cells_of_a_notebook_hold_a_lease(namespace: str) -> None:
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    v4 = nbformat.v4
    setup = f"import sys; sys.path.insert(0, {str(ROOT / 'clients/python/src')!r})\nimport holdfast"
    book = v4.new_notebook(cells=[v4.new_code_cell(code.strip()) for code in (setup, HELD, RELEASED)])
    nbclient.NotebookClient(book, timeout=60, kernel_name="python3").execute()
    _, held, released = (cell.outputs[0].text if cell.outputs else "" for cell in book.cells)
    assert held.startswith("<Lease of 'orders/rebuild', fence ")
    assert released == "True\n"


def test_the_cells_run_without_a_notebook(namespace: str) -> None:
    names: dict[str, Any] = {"holdfast": holdfast}
    run(PAGE, HELD, names)
    run(PAGE, RELEASED, names)
