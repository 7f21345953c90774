"""Files of quantiles and of counts, in both runtimes."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from deploy.models_with_losses import LOSSES, counted, fitted
from psilonnet.scale import predict_files


@pytest.mark.parametrize("runtime", ["numpy", "onnx"])
@pytest.mark.parametrize("name", ["quantiles", "counts"])
def test_files_of_other_losses(name, runtime, tmp_path):
    model, (frame, _) = fitted(name), counted(seed=1)
    frame.to_parquet(tmp_path / "in.parquet")
    predict_files(model, tmp_path / "in.parquet", tmp_path / "out", runtime=runtime, progress=False)
    found = pq.read_table(tmp_path / "out").to_pandas()
    several = "quantile" in LOSSES[name]
    names = ["quantile 0.1", "quantile 0.5", "quantile 0.9"] if several else ["prediction"]
    assert found.columns.tolist() == names
    expected = pd.DataFrame(model.predict(frame)).to_numpy()
    np.testing.assert_allclose(found.to_numpy(), expected, rtol=1e-4)
