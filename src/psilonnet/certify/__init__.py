"""Proofs about a trained network."""

from psilonnet.certify.global_bound import first_masses, input_moves
from psilonnet.certify.local_bound import local_moves
from psilonnet.certify.rounding import forward_error

__all__ = ["first_masses", "forward_error", "input_moves", "local_moves"]
