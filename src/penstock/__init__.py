"""Penstock: a distributed, fault-tolerant, load-adaptive stream processor on Apache Spark."""

__version__ = "0.1.0"
