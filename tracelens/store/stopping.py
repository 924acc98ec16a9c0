"""Stopping a query from another thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from tracelens.errors import QueryStopped


class Stop:
    """Given to a query by one thread, pulled by another: the query ends at once with `QueryStopped`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pulled = False
        self._interrupt: Callable[[], None] | None = None

    @property
    def pulled(self) -> bool:
        """Whether it was pulled."""
        return self._pulled

    def pull(self) -> None:
        """Stop the query that runs, and let no further one begin."""
        with self._lock:
            self._pulled = True
            if self._interrupt is not None:
                self._interrupt()

    @contextlib.contextmanager
    def around(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """While a query runs that `interrupt` would end; raises `QueryStopped` where it was pulled, before or meanwhile."""
        with self._lock:
            self._check()
            self._interrupt = interrupt
        try:
            yield
        except Exception:
            self._check()
            raise
        else:
            self._check()
        finally:
            with self._lock:
                self._interrupt = None

    def _check(self) -> None:
        if self._pulled:
            raise QueryStopped("stopped")
