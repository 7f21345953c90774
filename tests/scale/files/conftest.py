import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from made_tables import members
from psilonnet import Design, PSiLONClassifier

SMALL = {
    "width": 16,
    "max_steps": 40,
    "reg_strength": 1e-3,
    "designs": [Design()],
    "cv": 2,
    "verbose": False,
}


@pytest.fixture(scope="module")
def model():
    table = members(300, 0)
    answer = np.where(table.income.fillna(50) + 10 * (table.city == "Oslo") > 52, "yes", "no")
    return PSiLONClassifier(random_state=0, **SMALL).fit(table, answer)


@pytest.fixture
def files(tmp_path):
    """Three files of 100 rows in row groups of 30, with an id and a column nobody asked for."""
    (tmp_path / "in").mkdir()
    for k in range(3):
        table = members(100, k + 1).assign(id=np.arange(100) + 100 * k, extra="?")
        pq.write_table(
            pa.Table.from_pandas(table[::-1], preserve_index=False),
            tmp_path / "in" / f"{k}.parquet",
            row_group_size=30,
        )
    return tmp_path / "in"
