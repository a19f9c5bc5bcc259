"""The blocks of docs/delta.md run in their order, over the S3 emulator of a real stack."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest
from guides import blocks, run

import holdfast

deltalake = pytest.importorskip("deltalake")
arro3 = pytest.importorskip("arro3.core")

PAGE = "docs/delta.md"


def rows_of(*ids: int) -> Any:
    """Rows to write."""
    return arro3.Table.from_pydict({"id": arro3.Array(list(ids), arro3.DataType.int64())})


class Guide:
    """A table, and the functions that the page defines."""

    def __init__(self, endpoint: str) -> None:
        origin, port = endpoint.rsplit(":", 1)
        self.names: dict[str, Any] = {"rows": rows_of(90, 91)}
        self.s3 = f"{origin}:{int(port) + 2}"

    def play(self, at: int) -> None:
        """Runs a block of the page."""
        _, code = blocks(PAGE)[at]
        run(PAGE, code.replace("http://127.0.0.1:9000", self.s3).replace('"orders"', repr(self.table)), self.names)

    def begin(self) -> None:
        """Creates a table of three files."""
        self.table = f"orders-{uuid.uuid4().hex[:8]}"
        self.play(0)
        self.uri, self.options = f"{self.names['LAKE']}/{self.table}", self.names["OPTIONS"]
        for at in range(3):
            deltalake.write_deltalake(
                self.uri, rows_of(2 * at, 2 * at + 1), mode="append", storage_options=self.options
            )

    def open(self) -> Any:
        return deltalake.DeltaTable(self.uri, storage_options=self.options)

    def ids(self) -> list[int]:
        """The ids of the rows in the table."""
        found = deltalake.QueryBuilder().register("t", self.open()).execute("select id from t order by id")
        return list(found.read_all()["id"].to_pylist())


@pytest.fixture
def guide(endpoint: str, namespace: str) -> Guide:
    """The page with a new table."""
    one = Guide(endpoint)
    one.begin()
    return one


def test_the_maintenance_of_the_guide_compacts_and_stores_its_fence(guide: Guide) -> None:
    guide.play(1)
    assert len(guide.open().file_uris()) == 1
    assert guide.ids() == list(range(6))
    [compaction] = [one for one in guide.open().history() if one["operation"] == "OPTIMIZE"]
    assert int(compaction["fence"]) > 0


def test_four_concurrent_jobs_of_maintenance_keep_each_row(guide: Guide) -> None:
    guide.play(1)
    for at in range(4):
        deltalake.write_deltalake(guide.uri, rows_of(10 + at), mode="append", storage_options=guide.options)
    jobs = [threading.Thread(target=guide.names["maintain"], args=(guide.table,)) for _ in range(4)]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert guide.ids() == [*range(6), *range(10, 14)]


def test_the_table_refuses_the_fence_of_an_earlier_holder(guide: Guide) -> None:
    guide.names["holdfast"] = holdfast
    guide.play(2)
    assert guide.ids() == [*range(6), 90, 91]
    earlier = guide.open()
    guide.play(2)
    fence = deltalake.Transaction("nightly", 1)
    mark = deltalake.CommitProperties(app_transactions=[fence])
    with pytest.raises(deltalake.exceptions.CommitFailedError):
        deltalake.write_deltalake(earlier, rows_of(7), mode="append", commit_properties=mark)
    deltalake.write_deltalake(
        guide.open(),
        rows_of(8),
        mode="append",
        commit_properties=deltalake.CommitProperties(app_transactions=[deltalake.Transaction("nightly", 2**53)]),
    )
    with pytest.raises(RuntimeError, match="a later holder has written"):
        guide.play(2)


def test_two_compactions_of_one_version_end_as_the_guide_says(guide: Guide) -> None:
    first, second = guide.open(), guide.open()
    first.optimize.compact()
    if deltalake.__version__ == "1.6.6":
        second.optimize.compact()
        assert len(guide.ids()) == 12
    else:
        with pytest.raises(deltalake.exceptions.CommitFailedError):
            second.optimize.compact()
