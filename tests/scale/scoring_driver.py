"""A driver for the fault tests: python scoring_driver.py MODEL IN OUT CLUSTER"""

import sys

from psilonnet.scale import ScoringFailedError, score

BLOCK_ROWS = 10_000

if __name__ == "__main__":
    model, files, out, cluster = sys.argv[1:]
    try:
        score(
            model, files, out, keep=["id"], cluster=cluster, block_rows=BLOCK_ROWS, progress=False
        )
    except ScoringFailedError as error:
        sys.exit(f"{error}")
