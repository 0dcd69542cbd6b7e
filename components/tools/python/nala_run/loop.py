"""An event loop for code that waits for nothing but time and itself.

Python's own are built on a pair of sockets by which threads and signals wake them. There
are neither here, nor sockets.
"""

import asyncio
import selectors
import time
import warnings


class _Clock(selectors.BaseSelector):
    """Waits for time to pass."""

    def register(self, fileobj, events, data=None):
        raise OSError("there is nothing here to wait for but time")

    def unregister(self, fileobj):
        raise KeyError(fileobj)

    def get_map(self):
        return {}

    def select(self, timeout=None):
        if timeout is None:
            raise RuntimeError("it waits for ever: nothing is left that could wake it")
        if timeout > 0:
            time.sleep(timeout)
        return []


class Loop(asyncio.BaseEventLoop):
    """Runs what is ready, and sleeps until something is."""

    def __init__(self):
        super().__init__()
        self._selector = _Clock()

    def _process_events(self, event_list):
        """Called with what the selector found."""

    def _write_to_self(self):
        """Called to be woken by another thread."""


def make_default() -> None:
    """Has `asyncio.run` use it."""
    # The only way for code that names no loop, though Python would rather have none.
    with warnings.catch_warnings(action="ignore"):

        class Policy(asyncio.DefaultEventLoopPolicy):
            _loop_factory = Loop

        asyncio.set_event_loop_policy(Policy())
