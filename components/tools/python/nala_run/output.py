"""What code prints, of which the beginning and the end are kept."""

import codecs
import io
import re

# What a line of text cannot hold: control characters but for tabs and line ends, and
# halves of characters.
_UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with escapes for what could not be shown or sent."""
    return _UNFIT.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text.replace("\r\n", "\n"))


def left_out(count: int, unit: str) -> str:
    """What stands where something was left out."""
    return f"\n[... {count} {unit} left out ...]\n"


def shorten(text: str, most: int) -> str:
    """The text, or its beginning and its end where it has more characters than `most`."""
    if len(text) <= most:
        return text
    tail = most // 4
    return text[: most - tail] + left_out(len(text) - most, "characters") + text[-tail:]


class Output(io.RawIOBase):
    """Takes bytes without end, and keeps so many of the first and of the last."""

    def __init__(self, head: int, tail: int):
        super().__init__()
        self._most_head, self._most_tail = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self._gone = 0

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        with memoryview(data) as view, view.cast("B") as given:
            room = self._most_head - len(self._head)
            self._head += given[:room]
            # All that will not be the end is never copied.
            rest = given[room:]
            kept = rest[max(0, len(rest) - self._most_tail) :]
            self._gone += len(rest) - len(kept)
            self._tail += kept
            surplus = len(self._tail) - self._most_tail
            # Now and then rather than each time, since all that is kept is moved.
            if surplus > self._most_tail:
                del self._tail[:surplus]
                self._gone += surplus
            return len(given)

    def text(self) -> tuple[str, bool]:
        """All that was written, as text that can be shown; and whether something is left out."""
        tail = self._tail[-self._most_tail :]
        gone = self._gone + len(self._tail) - len(tail)
        if not gone:
            return plain((self._head + tail).decode("utf-8", "backslashreplace")), False
        # A character that was cut in two counts as left out.
        head = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode(self._head)
        begun = next((n for n, byte in enumerate(tail[:3]) if byte & 0xC0 != 0x80), 3)
        end = tail[begun:].decode("utf-8", "backslashreplace")
        return plain(head) + left_out(gone, "bytes") + plain(end), True


def stream(output: Output) -> io.TextIOWrapper:
    """What code prints to."""
    return io.TextIOWrapper(output, encoding="utf-8", errors="backslashreplace", newline="\n")
