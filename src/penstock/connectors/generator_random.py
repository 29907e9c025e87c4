"""Random numbers by row: each depends on its seed and its row alone, so rows can be made in any order."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.uint64]

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def stream_key(seed: int, column: str) -> np.uint64:
    """The key of a column's own stream of numbers."""
    digest = hashlib.blake2b(f"{seed}/{column}".encode(), digest_size=8).digest()
    return np.uint64(int.from_bytes(digest, "little"))


def random_bits(key: np.uint64, rows: Numbers) -> Numbers:
    """64 random bits for each row (SplitMix64, which can start anywhere)."""
    state = key + (rows + np.uint64(1)) * _GAMMA
    state = (state ^ (state >> np.uint64(30))) * _MIX_1
    state = (state ^ (state >> np.uint64(27))) * _MIX_2
    return state ^ (state >> np.uint64(31))


def random_floats(key: np.uint64, rows: Numbers) -> npt.NDArray[np.float64]:
    """A number from 0 up to but not including 1 for each row."""
    return (random_bits(key, rows) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def random_bytes(key: np.uint64, rows: Numbers, width: int) -> npt.NDArray[np.uint8]:
    """`width` random bytes for each row."""
    words = -(-width // 8)
    counters = np.add.outer(rows * np.uint64(words), np.arange(words, dtype=np.uint64))
    return random_bits(key, counters).astype("<u8").view(np.uint8).reshape(len(rows), words * 8)[:, :width]


def random_letters(key: np.uint64, rows: Numbers, width: int) -> pa.Array:
    """A string of `width` small letters for each row."""
    return _strings(random_bytes(key, rows, width) % np.uint8(26) + np.uint8(ord("a")))


def random_uuids(key: np.uint64, rows: Numbers) -> pa.Array:
    """A version 4 UUID for each row, as text."""
    values = random_bytes(key, rows, 16)
    values[:, 6] = values[:, 6] & 0x0F | 0x40
    values[:, 8] = values[:, 8] & 0x3F | 0x80
    digits = np.empty((len(rows), 32), dtype=np.uint8)
    digits[:, 0::2] = _HEX[values >> 4]
    digits[:, 1::2] = _HEX[values & 0x0F]
    return _strings(np.insert(digits, [8, 12, 16, 20], ord("-"), axis=1))


def _strings(characters: npt.NDArray[np.uint8]) -> pa.Array:
    """Strings of equal length, one for each row of ASCII codes."""
    count, width = characters.shape
    ends = pa.py_buffer(np.arange(count + 1, dtype=np.int32) * np.int32(width))
    return pa.StringArray.from_buffers(count, ends, pa.py_buffer(np.ascontiguousarray(characters).tobytes()))
