"""The report: a fitted model on one page that needs nothing else (extra: plot)."""

from psilonnet.report.page import write_report

__all__ = ["write_report"]
