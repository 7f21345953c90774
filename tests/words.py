"""Cells of words, read as numbers or as dates."""

import numpy as np

from psilonnet.tables import Column, TextCells, TextStyle


def cells(*words):
    values = np.empty(len(words), dtype=object)
    values[:] = words
    return TextCells(Column("price", "category", values))


def numbers(*words, **style):
    reading = cells(*words).read("number", TextStyle(**style))
    assert reading.unread == 0
    return reading.values.tolist()


def days(*words, **style):
    reading = cells(*words).read("time", TextStyle(**style))
    assert reading.unread == 0
    return [str(day)[:10] for day in reading.values]
