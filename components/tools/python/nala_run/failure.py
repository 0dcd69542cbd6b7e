"""What is told of an exception: the code's own part of the traceback, and what may help."""

import linecache
import traceback

from . import preload
from .output import plain, shorten

# The file name that the code goes by.
FILE = "<code>"
# Characters of a traceback that are told.
_MOST = 8000


def show_source(code: str) -> None:
    """Lets tracebacks show lines of the code."""
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)


def describe(error: BaseException) -> str:
    """The traceback of an exception, with a hint where there is one."""
    try:
        shown = traceback.TracebackException.from_exception(error)
        _leave_out_others(shown, set())
        text = "".join(shown.format()).rstrip()
    except (MemoryError, RecursionError):
        text = type(error).__name__
    hint = _hint(error)
    return shorten(plain(text), _MOST) + (f"\n{hint}" if hint else "")


def _leave_out_others(shown: traceback.TracebackException, seen: set[int]) -> None:
    """Takes out what is not of the code: the frames of this program and of libraries."""
    if id(shown) in seen:
        return
    seen.add(id(shown))
    frames = [frame for frame in shown.stack or () if frame.filename == FILE]
    shown.stack = traceback.StackSummary.from_list(frames) if frames else None
    for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if other is not None:
            _leave_out_others(other, seen)


def _hint(error: BaseException) -> str | None:
    """What this interpreter is not, where an exception comes of that."""
    match error:
        case ModuleNotFoundError():
            names = ", ".join(name for name in preload.MODULES if "." not in name)
            return f"Hint: nothing can be installed. These modules are there, with some below them: {names}."
        case MemoryError():
            return "Hint: memory is limited here. Work on less at a time."
        case EOFError():
            return "Hint: nobody types anything in here. Write the data into the code, or pass it as `inputs`."
        case RuntimeError() if "new thread" in str(error):
            return "Hint: there is one thread. Do one thing after another."
        case OSError():
            return (
                "Hint: there are no files, no network and no other programs here, but for what this tool was granted. "
                "Write the data into the code, or pass it as `inputs`; print what is to be kept."
            )
    return None
