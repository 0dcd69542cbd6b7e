"""Python's values as JSON's."""

import math
from typing import Any

# Stands for a value that JSON cannot say as it is.
ABSENT = object()

# How deep lists and objects lie in each other, and how many values there are in all.
_DEEPEST = 32
_MOST = 10_000
# Characters of all texts and digits together.
_LONGEST = 100_000
# Integers beyond it are rounded by many readers.
_EXACT = 2**53


class _Unfit(Exception):
    """JSON cannot say it, or it is too much."""


class _Room:
    """What may still be said."""

    def __init__(self):
        self.values, self.characters = _MOST, _LONGEST

    def take(self, characters: int) -> None:
        self.values -= 1
        self.characters -= characters
        if self.values < 0 or self.characters < 0:
            raise _Unfit


def as_json(value: Any) -> Any:
    """What `json.dumps` says exactly, or `ABSENT`."""
    try:
        return _fit(value, _DEEPEST, _Room())
    except _Unfit:
        return ABSENT


def _fit(value: Any, depth: int, room: _Room) -> Any:
    # Subclasses are left out: they may mean something else, and run code of their own.
    kind = type(value)
    if depth == 0:
        raise _Unfit
    if value is None or kind is bool:
        room.take(0)
        return value
    if kind is int and -_EXACT <= value <= _EXACT:
        room.take(0)
        return value
    if kind is float and math.isfinite(value):
        room.take(0)
        return value
    if kind is str:
        return _text(value, room)
    if kind is list or kind is tuple:
        room.take(0)
        return [_fit(item, depth - 1, room) for item in value]
    if kind is dict:
        room.take(0)
        return {_key(key, room): _fit(item, depth - 1, room) for key, item in value.items()}
    raise _Unfit


def _key(key: Any, room: _Room) -> str:
    if type(key) is not str:
        raise _Unfit
    return _text(key, room)


def _text(text: str, room: _Room) -> str:
    room.take(len(text))
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise _Unfit
    return text
