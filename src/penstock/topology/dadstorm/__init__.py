"""The DADSTORM configuration format: statements in, a topology and its commands out."""

from penstock.topology.dadstorm.reader import parse_commands, read_dadstorm, read_dadstorm_text

__all__ = ["parse_commands", "read_dadstorm", "read_dadstorm_text"]
