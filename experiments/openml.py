"""The tables of the benchmark from OpenML (suites 334 to 337), for those who have a network."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import urlopen

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_openml

API = "https://www.openml.org/api/v1/json"
MIXED = (334, 335)  # suites of tables with categories; 336 and 337 hold numbers only
REGRESSION = (335, 336)

# name: (suite, task). Where a table is in two suites, the one with categories is taken, except
# for nyc_taxi_green_dec_2016.
TASKS = {
    "cpu_act": (336, 361072),
    "pol": (336, 361073),
    "elevators": (336, 361074),
    "wine_quality": (336, 361076),
    "ailerons": (336, 361077),
    "house_16h": (336, 361079),
    "miami_housing_2016": (336, 361087),
    "superconduct": (336, 361088),
    "yprop_4_1": (336, 361279),
    "mercedes_benz_greener_manufacturing": (335, 361097),
    "brazilian_houses": (335, 361098),
    "bike_sharing_demand": (335, 361099),
    "nyc_taxi_green_dec_2016": (336, 361083),
    "house_sales": (335, 361102),
    "topo_2_1": (335, 361287),
    "allstate_claims_severity": (335, 361292),
    "credit": (337, 361055),
    "magic_telescope": (337, 361065),
    "miniboone": (337, 361068),
    "higgs": (337, 361069),
    "jannis": (337, 361274),
    "bioresponse": (337, 361276),
    "heloc": (337, 361278),
    "eye_movements": (334, 361111),
    "covertype": (334, 361113),
    "albert": (334, 361282),
    "default_of_credit_card_clients": (334, 361283),
    "road_safety": (334, 361285),
    "compas_two_years": (334, 361286),
}


def table_version(name: str) -> str:
    """Return which version of a table is used: with categories ("mixed") or without."""
    return "mixed" if TASKS[name][0] in MIXED else "numerical"


def source_of(task: int) -> tuple[int, str]:
    """Return the data set and the target column of a task."""
    with urlopen(f"{API}/task/{task}", timeout=60) as response:
        answer: dict[str, Any] = json.load(response)
    source = next(i for i in answer["task"]["input"] if i["name"] == "source_data")["data_set"]
    return int(source["data_set_id"]), source["target_feature"]


def fetch_table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Download a table: predictors (categories as a pandas category) and the target.

    At most 20,000 rows, in a fixed random order; the two classes of a classification become 0
    and 1.
    """
    if name not in TASKS:
        raise ValueError(f"The table must be one of {sorted(TASKS)}. Got {name!r} instead.")
    suite, task = TASKS[name]
    data_id, target = source_of(task)
    frame = fetch_openml(data_id=data_id, as_frame=True, parser="liac-arff", target_column=None)
    rows: pd.DataFrame = frame.data.dropna()
    rows = rows.iloc[np.random.default_rng(0).permutation(len(rows))[:20_000]]
    y = rows.pop(target)
    if suite not in REGRESSION:
        y = pd.Series(pd.factorize(y, sort=True)[0])
    return rows.reset_index(drop=True), y.to_numpy(float)
