"""Fixtures shared by the tests of the displays."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from plot.settings import SMALL
from psilonnet import PSiLONRegressor

mpl.use("Agg")


@pytest.fixture(scope="session")
def model():
    x = np.random.default_rng(0).normal(size=(60, 30))
    names = [f"column number {k} with a name longer than anybody wants" for k in range(30)]
    return PSiLONRegressor(**SMALL).fit(pd.DataFrame(x, columns=names), x[:, 0])


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")
