"""The report: a fitted model on one page, as HTML or as a model card (extra: plot)."""

from psilonnet.report.writing import check_page, write_report

__all__ = ["check_page", "write_report"]
