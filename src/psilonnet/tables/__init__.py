"""Tables: columns of any frame, and their encoding as numbers."""

from psilonnet.tables.canonical import (
    CanonicalRows,
    canonical_rows,
    count_repeats,
    distinct_words,
)
from psilonnet.tables.codes import BOOLEANS, FAR, CategoryCode, NumberCode
from psilonnet.tables.columns import (
    DAY,
    Column,
    LossWarning,
    missing_cells,
    read_columns,
    unmasked,
    word_of,
)
from psilonnet.tables.encoder import OutOfRangeWarning, TableEncoder, fit_encoder
from psilonnet.tables.lost_columns import warn_text
from psilonnet.tables.moved import with_cells
from psilonnet.tables.quantiles import weighted_mean_and_deviation, weighted_quantile
from psilonnet.tables.text import (
    TEXT_KINDS,
    TextCells,
    TextError,
    TextKind,
    TextReading,
    TextStyle,
    read_text,
)

__all__ = [
    "BOOLEANS",
    "DAY",
    "FAR",
    "TEXT_KINDS",
    "CanonicalRows",
    "CategoryCode",
    "Column",
    "LossWarning",
    "NumberCode",
    "OutOfRangeWarning",
    "TableEncoder",
    "TextCells",
    "TextError",
    "TextKind",
    "TextReading",
    "TextStyle",
    "canonical_rows",
    "count_repeats",
    "distinct_words",
    "fit_encoder",
    "missing_cells",
    "read_columns",
    "read_text",
    "unmasked",
    "warn_text",
    "weighted_mean_and_deviation",
    "weighted_quantile",
    "with_cells",
    "word_of",
]
