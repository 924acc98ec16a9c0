"""Stopping a query from another thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from tracelens.errors import QueryStopped


class Stop:
    """Given to queries by some threads, pulled by another: they end at once with `QueryStopped`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pulled = False
        self._interrupts: list[Callable[[], None]] = []

    @property
    def pulled(self) -> bool:
        """Whether it was pulled."""
        return self._pulled

    def pull(self) -> None:
        """Stop the queries that run, and let no further one begin."""
        with self._lock:
            self._pulled = True
            for interrupt in self._interrupts:
                interrupt()

    @contextlib.contextmanager
    def around(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """While a query runs that `interrupt` would end; raises `QueryStopped` where it was pulled, before or meanwhile."""
        with self._lock:
            self._check()
            self._interrupts.append(interrupt)
        try:
            yield
        except Exception:
            self._check()
            raise
        else:
            self._check()
        finally:
            with self._lock:
                self._interrupts.remove(interrupt)

    def _check(self) -> None:
        if self._pulled:
            raise QueryStopped("stopped")
