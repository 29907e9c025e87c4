"""Penstock beside other stream processors: what `benchmarks/peers.py` is made of."""
