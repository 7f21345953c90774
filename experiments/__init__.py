"""Experiments on real data, in three packages that do not know each other.

``paper`` has the paper's tables and figures, ``comparison`` other libraries and what they cost,
``studies`` how the defaults were found; what they share is beside them.

    python -m experiments.PACKAGE.NAME --data DIR
"""
