"""A driver for the fault tests: python predict_driver.py MODEL IN OUT [CLUSTER]"""

import sys

from psilonnet.scale import FilesFailedError, predict_files

BLOCK_ROWS = 10_000

if __name__ == "__main__":
    model, files, out, *rest = sys.argv[1:]
    cluster = rest[0] if rest else None
    try:
        predict_files(
            model, files, out, keep=["id"], cluster=cluster, block_rows=BLOCK_ROWS, progress=False
        )
    except FilesFailedError as error:
        sys.exit(f"{error}")
