import json
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from psilonnet import Design, PSiLONRegressor
from psilonnet.scale import predict_files
from psilonnet.scale.files.runtime import export_model

SMALL = {
    "width": 16,
    "max_steps": 40,
    "reg_strength": 1e-3,
    "designs": [Design()],
    "cv": 2,
    "verbose": False,
}
quietly = partial(predict_files, progress=False)


@pytest.mark.parametrize("runtime", ["numpy", "onnx"])
@pytest.mark.parametrize("targets", [0, 2])
def test_regressors_write_numbers(tmp_path, runtime, targets):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    model = PSiLONRegressor(random_state=0, **SMALL).fit(x, x[:, :targets] if targets else x[:, 0])
    pq.write_table(pa.table({f"x{k}": x[:, k] for k in range(3)}), tmp_path / "a.parquet")
    done = quietly(model, tmp_path / "a.parquet", tmp_path / "out", runtime=runtime)
    table = pq.read_table(done.paths[0])
    assert table.column_names == (["prediction 0", "prediction 1"] if targets else ["prediction"])
    found = np.stack([c.to_numpy() for c in table.columns], axis=1)
    wanted = model.predict(x).reshape(200, -1)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_types_of_parquet_are_read_as_the_estimator_reads_them(tmp_path):
    frame = pa.table(
        {
            "money": pa.array([Decimal(k % 7) for k in range(60)], pa.decimal128(9, 2)),
            "count": pa.array([None if k % 5 == 0 else k for k in range(60)], pa.int32()),
            "wait": pa.array([k * 3600_000 for k in range(60)], pa.duration("ms")),
            "day": pa.array(list(range(60)), pa.date32()),
            "at": pa.array([k * 10**9 for k in range(60)], pa.timestamp("us", "Europe/Rome")),
            "word": pa.array(["a", "b", None] * 20).dictionary_encode(),
            "flag": pa.array([True, None, False] * 20),
        }
    )
    model = PSiLONRegressor(random_state=0, **SMALL).fit(frame, np.arange(60.0))
    pq.write_table(frame, tmp_path / "a.parquet")
    done = quietly(model, tmp_path / "a.parquet", tmp_path / "out")
    found = pq.read_table(done.paths[0])["prediction"].to_numpy()
    np.testing.assert_allclose(found, model.predict(frame), rtol=1e-9)


def test_digest_sees_the_content_alone(model, tmp_path):
    first = export_model(model, "numpy")
    manifest = json.loads(first.manifest)
    model.export_numpy(tmp_path)
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "psilonnet": "9.9"}))
    assert export_model(tmp_path, "numpy").digest == first.digest
    manifest["target"]["temperature"] *= 2
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert export_model(tmp_path, "numpy").digest != first.digest
