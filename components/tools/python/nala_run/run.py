"""Runs code as a notebook runs a cell."""

import ast
import builtins
import io
import os
import random
import sys
import types
from dataclasses import dataclass
from typing import Any

from . import failure
from .output import Output, plain, shorten, stream
from .value import ABSENT, as_json

# Bytes of what is printed that are told: so many of the beginning and of the end.
_HEAD, _TAIL = 24_000, 8_000
# Characters of the value of the last line that are told.
_MOST_RESULT = 16_000

# What all code finds without importing it.
_BUILTINS = vars(builtins)

# Bytes of memory for telling that there is none left.
_RESERVE = 256 << 10


@dataclass(frozen=True)
class Outcome:
    """What came of the code."""

    # What it printed.
    output: str
    # How Python writes the value of the last line; none where that is None or no expression.
    result: str | None
    # The value itself, or `ABSENT` where JSON cannot say it.
    value: Any
    # Why it did not come to its end.
    error: str | None
    # Whether the output or the result is longer than what is told of it.
    shortened: bool


def run(code: str, inputs: dict[str, Any]) -> Outcome:
    """Runs the code and tells what came of it, whatever it does."""
    output = Output(_HEAD, _TAIL)
    printed_to = stream(output)
    _make_ready(printed_to)
    known = dict(vars(builtins))
    reserve = bytearray(_RESERVE)
    result, value, error = None, ABSENT, None
    try:
        last = _execute(code, inputs)
        if last is not None:
            # This may be code of the value's own class.
            result = repr(last)
            value = as_json(last)
    except SystemExit as end:
        if end.code is not None and end.code != 0:
            error = f"SystemExit: {plain(shorten(str(end.code), _MOST_RESULT))}"
    except BaseException as raised:
        reserve.clear()
        # What follows, and what calls this, are lost without them.
        _BUILTINS.update(known)
        error = failure.describe(raised)
    _BUILTINS.update(known)
    _flush(printed_to, sys.stdout, sys.stderr)
    printed, shortened = output.text()
    if result is not None:
        shortened |= len(result) > _MOST_RESULT
        result = plain(shorten(result, _MOST_RESULT))
    return Outcome(printed, result, value, error, shortened)


def _make_ready(printed_to: io.TextIOWrapper) -> None:
    """Gives an interpreter that was made long before this call what is of this call."""
    # From the host's random numbers: a copy of an interpreter would have those of the others.
    # componentize-py sees to it as well, which is not to be relied on.
    random.seed()
    # CPU time is limited, so a number of many digits harms nobody.
    sys.set_int_max_str_digits(0)
    sys.stdout = sys.stderr = printed_to
    sys.stdin = io.StringIO()
    sys.argv = [failure.FILE]
    builtins.input = _input
    # The host would see the whole component end, and say that it failed.
    os._exit = sys.exit


def _input(prompt: object = "") -> str:
    """Stands for `input`."""
    raise EOFError("input() has nobody to ask")


def _execute(code: str, inputs: dict[str, Any]) -> Any:
    """Runs the code as the program that it would be in a file; gives the value of the last line."""
    failure.show_source(code)
    # A module, since pickle, dataclasses and type hints look names up in theirs.
    main = types.ModuleType("__main__")
    main.__dict__["inputs"] = inputs
    sys.modules["__main__"] = main
    tree = ast.parse(code, failure.FILE)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, failure.FILE, "exec", dont_inherit=True), main.__dict__)
    if last is None:
        return None
    expression = ast.Expression(last.value)
    return eval(compile(expression, failure.FILE, "eval", dont_inherit=True), main.__dict__)


def _flush(*streams: Any) -> None:
    """Has what is printed to hand on what it still holds."""
    # Those that the code made itself write to the first.
    for written in reversed(streams):
        try:
            written.flush()
        except Exception:
            # The code closed it, or made it something else.
            pass
