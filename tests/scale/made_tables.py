"""Tables that several tests of this folder fit or predict."""

import numpy as np
import pandas as pd


def stores(groups=5, rows=30, seed=0):
    """Return a frame of stores whose prices depend on size and town in their own ways."""
    rng = np.random.default_rng(seed)
    n = groups * rows
    store = np.repeat([f"store {k}/../é" for k in range(groups)], rows)
    size, town = rng.normal(size=n), rng.choice(["a", "b"], n)
    slope = np.repeat(np.arange(1.0, groups + 1), rows)
    frame = pd.DataFrame({"store": store, "size": size, "town": town, "y": slope * size})
    return frame.sample(frac=1, random_state=0).reset_index(drop=True)


def members(rows, seed):
    """Return a frame with numbers, words, times and truths, some of them missing."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "income": rng.normal(50, 15, rows),
            "city": rng.choice(["Rome", "Oslo", None], rows),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
            "member": rng.random(rows) > 0.5,
        }
    )
    table.loc[::9, "income"] = np.nan
    return table
