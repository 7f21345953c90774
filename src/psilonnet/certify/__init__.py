"""Proofs about a trained network."""

from psilonnet.certify.moves import input_bounds

__all__ = ["input_bounds"]
