"""What custom code remembers of the key at hand: named values, lists and maps, and timers.

Nothing here knows Spark: `KeyedState` works on what `state_encoding` decodes, and says afterwards whether it changed.
Time stands still within an epoch, so what has lived long enough is dropped once, when a key's state is opened.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, overload
from uuid import UUID

from penstock.topology.state_encoding import Item, NotPlain, Remembered, encode

Duration = timedelta | float
"""A timedelta, or seconds."""

_SCALARS = frozenset(
    {bool, int, float, complex, str, bytes, NoneType, datetime, date, timedelta, Decimal, UUID}
)
"""What cannot be changed in place, and is plain."""


class KeyedState:
    """The state of one key in one epoch: `context.state`.

    `begin` marks a point to which `undo` goes back; only where tuples may fail, since what is needed for it costs time.
    """

    def __init__(self, remembered: Remembered, now_ms: int, *, undoable: bool = False) -> None:
        self.remembered = remembered
        self.now_ms = now_ms
        self.touched = _drop_expired(remembered, now_ms)
        """Whether anything may be different from what it was."""
        self.undoable = undoable
        self._undo: list[Callable[[], None]] = []

    def value(self, name: str, default: Any = None, *, ttl: Duration | None = None) -> ValueState:
        """One value; `default` is what `get` gives while there is none."""
        return ValueState(self, name, _milliseconds(ttl), default)

    def list(self, name: str, *, ttl: Duration | None = None) -> ListState:
        """A list to append to; with `ttl`, each element lives that long after it was appended."""
        return ListState(self, name, _milliseconds(ttl))

    def map(self, name: str, *, ttl: Duration | None = None) -> MapState:
        """A mapping; with `ttl`, each entry lives that long after it was written."""
        return MapState(self, name, _milliseconds(ttl))

    def clear(self) -> None:
        """Forget all values, lists and maps of the key. Its timers stay."""
        for name in list(self.remembered.items):
            self.put(name, None)

    # -- for those who run the code -------------------------------------------------------------

    def begin(self) -> None:
        self._undo.clear()

    def undo(self) -> None:
        """Go back to the last `begin`."""
        while self._undo:
            self._undo.pop()()

    # -- for the handles below ------------------------------------------------------------------

    def item(self, name: str, kind: str) -> Item | None:
        item = self.remembered.items.get(name)
        if item is not None and item.kind != kind:
            raise TypeError(f"state '{name}' is a {item.kind}, so it cannot be used as a {kind}")
        return item

    def put(self, name: str, item: Item | None) -> None:
        """Have this item, or none, from now on."""
        items = self.remembered.items
        before = items.get(name)
        self.changing(lambda: _put(items, name, before))
        _put(items, name, item)

    def changing(self, undo: Callable[[], None]) -> None:
        """Something is about to change, and `undo` would change it back."""
        self.touched = True
        if self.undoable:
            self._undo.append(undo)

    def lend(self, value: Any, give_back: Callable[[Any], None]) -> Any:
        """Hand out a value that the code might change in place; `give_back` would put a copy where it was."""
        if not _is_scalar(value):
            self.touched = True
            if self.undoable:
                copy = pickle.dumps(value)
                self._undo.append(lambda: give_back(pickle.loads(copy)))
        return value

    def kept(self, name: str, value: Any) -> Any:
        """`value`, if it can be kept; raises TypeError."""
        if not _is_scalar(value):
            try:
                encode(Remembered({"": Item("value", value)}))
            except (NotPlain, pickle.PicklingError, TypeError, AttributeError) as error:
                raise TypeError(f"state '{name}': {error}") from error
        return value


class ValueState:
    """One remembered value: `get`, `set`, `clear`."""

    __slots__ = ("_default", "_name", "_state", "_ttl")

    def __init__(self, state: KeyedState, name: str, ttl: int | None, default: Any) -> None:
        self._state = state
        self._name = name
        self._ttl = ttl
        self._default = default

    def get(self) -> Any:
        item = self._state.item(self._name, "value")
        if item is None:
            return self._default
        content = item.content
        if type(content) in _SCALARS:
            return content

        def give_back(copy: Any) -> None:
            item.content = copy

        return self._state.lend(content, give_back)

    def set(self, value: Any) -> None:
        state, name = self._state, self._name
        item = state.item(name, "value")
        if type(value) not in _SCALARS:
            state.kept(name, value)
        expires = None if self._ttl is None else state.now_ms + self._ttl
        if item is None or state.undoable:
            state.put(name, Item("value", value, expires))
        else:
            item.content, item.expires, state.touched = value, expires, True

    def clear(self) -> None:
        if self._state.item(self._name, "value") is not None:
            self._state.put(self._name, None)


class ListState:
    """A remembered list: `append`, `extend`, `set`, `clear`, iteration, `len`, and reading by index."""

    __slots__ = ("_name", "_state", "_ttl")

    def __init__(self, state: KeyedState, name: str, ttl: int | None) -> None:
        self._state = state
        self._name = name
        self._ttl = ttl

    def append(self, value: Any) -> None:
        self.extend((value,))

    def extend(self, values: Iterable[Any]) -> None:
        state, name = self._state, self._name
        added = [state.kept(name, value) for value in values]
        item = state.item(name, "list")
        if item is None:
            state.put(name, Item("list", added, self._expiries(len(added))))
            return
        content, number = item.content, len(item.content)
        expires = item.expires
        if expires is None and self._ttl is not None:
            # From now on some elements end: those from before do not.
            state.changing(lambda: setattr(item, "expires", None))
            expires = item.expires = [None] * number

        def undo() -> None:
            del content[number:]
            if expires is not None:
                del expires[number:]

        state.changing(undo)
        content.extend(added)
        if expires is not None:
            expires.extend(self._expiries(len(added)) or [None] * len(added))

    def set(self, values: Iterable[Any]) -> None:
        """Have these elements and no others, all as if appended now."""
        state, name = self._state, self._name
        state.item(name, "list")
        content = [state.kept(name, value) for value in values]
        state.put(name, Item("list", content, self._expiries(len(content))) if content else None)

    def clear(self) -> None:
        self.set(())

    def __iter__(self) -> Iterator[Any]:
        return iter(self._lent())

    def __len__(self) -> int:
        return len(self._content())

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> list[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        return self._lent()[place]

    def _content(self) -> list[Any]:
        item = self._state.item(self._name, "list")
        content: list[Any] = [] if item is None else item.content
        return content

    def _lent(self) -> list[Any]:
        """The elements, as a list of their own: it may be appended to while it is iterated over."""
        content = self._content()

        def give_back(copy: list[Any]) -> None:
            content[:] = copy

        if not all(type(value) in _SCALARS for value in content):
            self._state.lend(content, give_back)
        return content[:]

    def _expiries(self, number: int) -> list[int | None] | None:
        return None if self._ttl is None else [self._state.now_ms + self._ttl] * number


class MapState(MutableMapping[Any, Any]):
    """A remembered mapping: `[k]`, `get`, `in`, `del`, `items`, `pop` and the rest of what a dict can do."""

    __slots__ = ("_name", "_state", "_ttl")

    def __init__(self, state: KeyedState, name: str, ttl: int | None) -> None:
        self._state = state
        self._name = name
        self._ttl = ttl

    def __getitem__(self, key: Any) -> Any:
        content = self._content()
        value = content[key]
        if type(value) in _SCALARS:
            return value
        return self._state.lend(value, lambda copy: content.__setitem__(key, copy))

    def __setitem__(self, key: Any, value: Any) -> None:
        state, name = self._state, self._name
        state.kept(name, key)
        state.kept(name, value)
        item = state.item(name, "map")
        if item is None:
            item = Item("map", {})
            state.put(name, item)
        expires = None if self._ttl is None else state.now_ms + self._ttl
        self._change(item, key, value, expires)

    def __delitem__(self, key: Any) -> None:
        item = self._state.item(self._name, "map")
        if item is None or key not in item.content:
            raise KeyError(key)
        self._change(item, key, _ABSENT, None)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._content()))

    def __len__(self) -> int:
        return len(self._content())

    def __contains__(self, key: object) -> bool:
        return key in self._content()

    def clear(self) -> None:
        if self._state.item(self._name, "map") is not None:
            self._state.put(self._name, None)

    def _content(self) -> dict[Any, Any]:
        item = self._state.item(self._name, "map")
        content: dict[Any, Any] = {} if item is None else item.content
        return content

    def _change(self, item: Item, key: Any, value: Any, expires: int | None) -> None:
        content = item.content
        if item.expires is None and expires is not None:
            item.expires = {}
        ends = {} if item.expires is None else item.expires
        before, end_before = content.get(key, _ABSENT), ends.get(key)
        # Put back where it was, so that the order of the entries is as before.
        all_before = dict(content) if value is _ABSENT and self._state.undoable else None

        def undo() -> None:
            if all_before is None:
                _put(content, key, before, _ABSENT)
            else:
                content.clear()
                content.update(all_before)
            _put(ends, key, end_before)

        self._state.changing(undo)
        _put(content, key, value, _ABSENT)
        _put(ends, key, expires)


class Timers:
    """The timers of the key at hand: `context.timers`. Each has a name, and there is one of each name."""

    def __init__(self, state: KeyedState, handled: bool) -> None:
        self._state = state
        self._handled = handled

    def set(self, when: datetime | Duration, name: str = "") -> None:
        """Have `on_timer(name)` called for this key in the first epoch whose time is not before `when`.

        `when` is a moment, or a timedelta or a number of seconds from now. A timer of that name which is set already
        is moved. At the end of bounded input all timers that are still set are called once.
        """
        if not self._handled:
            raise TypeError("timers.set: nobody is called when it is due; write a Bolt with on_timer(self, name)")
        self._change(str(name), self._moment(when))

    def cancel(self, name: str = "") -> None:
        """Forget a timer; nothing happens when it is not set."""
        if name in self._state.remembered.timers:
            self._change(name, None)

    def due(self, name: str = "") -> datetime | None:
        """When a timer is due; None when it is not set."""
        due = self._state.remembered.timers.get(name)
        return None if due is None else from_milliseconds(due)

    def __contains__(self, name: object) -> bool:
        return name in self._state.remembered.timers

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._state.remembered.timers))

    def __len__(self) -> int:
        return len(self._state.remembered.timers)

    def _moment(self, when: datetime | Duration) -> int:
        if isinstance(when, datetime):
            if when.tzinfo is None:
                raise ValueError(f"timers.set({when!r}): without a time zone; start from context.time")
            return math.ceil(when.timestamp() * 1000)
        return self._state.now_ms + _to_milliseconds(when)

    def _change(self, name: str, due: int | None) -> None:
        timers = self._state.remembered.timers
        before = timers.get(name)
        self._state.changing(lambda: _put(timers, name, before))
        _put(timers, name, due)


def from_milliseconds(moment: int) -> datetime:
    return datetime.fromtimestamp(moment / 1000, UTC)


def next_wake(remembered: Remembered) -> int | None:
    """When the key must be looked at even if no tuple comes: a timer is due, or all with a time to live has ended.

    Not when the first of it has ended: what is gone reads as absent anyway, so it is thrown away all at once.
    """
    ends = [end for item in remembered.items.values() if item.expires is not None for end in _ends(item)]
    moments = [*remembered.timers.values(), *([max(ends)] if ends else [])]
    return min(moments, default=None)


def drop_empty(remembered: Remembered) -> None:
    """Forget lists and maps without anything in them."""
    for name, item in list(remembered.items.items()):
        if item.kind != "value" and not item.content:
            del remembered.items[name]


def _drop_expired(remembered: Remembered, now_ms: int) -> bool:
    """Forget what has lived long enough; whether there was anything."""
    dropped = False
    timed = [(name, item) for name, item in remembered.items.items() if item.expires is not None]
    for name, item in timed:
        if not any(end <= now_ms for end in _ends(item)):
            continue
        dropped = True
        match item.kind:
            case "value":
                del remembered.items[name]
            case "list":
                parts = zip(item.content, item.expires, strict=True)
                living = [(value, end) for value, end in parts if end is None or end > now_ms]
                item.content, item.expires = [value for value, _ in living], [end for _, end in living]
            case "map":
                for key in [key for key, end in item.expires.items() if end <= now_ms]:
                    del item.content[key], item.expires[key]
    return dropped


def _ends(item: Item) -> Iterable[int]:
    """When its parts end, where they do."""
    if item.expires is None:
        return ()
    match item.kind:
        case "value":
            return (item.expires,)
        case "list":
            return [end for end in item.expires if end is not None]
        case _:
            return list(item.expires.values())


def _is_scalar(value: Any) -> bool:
    kind = type(value)
    return kind in _SCALARS or (kind is tuple and all(_is_scalar(part) for part in value))


def _milliseconds(ttl: Duration | None) -> int | None:
    if ttl is None:
        return None
    number = _to_milliseconds(ttl)
    if number <= 0:
        raise ValueError(f"ttl={ttl!r}: a time to live is longer than nothing")
    return number


def _to_milliseconds(duration: Duration) -> int:
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else duration
    return math.ceil(seconds * 1000)


_ABSENT = object()


def _put(mapping: dict[Any, Any], key: Any, value: Any, absent: Any = None) -> None:
    """Have this value for the key; none when it is `absent`."""
    if value is absent:
        mapping.pop(key, None)
    else:
        mapping[key] = value
