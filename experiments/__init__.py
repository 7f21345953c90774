"""The paper's tables and figures on real data: ``python -m experiments.NAME --data DIR``."""
