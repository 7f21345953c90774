"""The tables and figures of the paper; its own figures are in ``published/``."""
