"""What all tests share: an empty case is made once, by whichever command or worker is first, and copied from then on."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import pytest

from tracelens.store.events import close_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

# A command in a process of its own is compiled once, not by each of them.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of this session's own, for all its workers and the processes that they start."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
        patch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
        yield


@contextlib.contextmanager
def _without_kept_views() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tracelens.store.writer.keep_views", close_events)
        yield


@pytest.fixture(scope="session")
def facts_alone() -> Callable[[], AbstractContextManager[None]]:
    """Inside, an ingest leaves out the rows of views at its end, as if it were one of several: the last one makes them all."""
    return _without_kept_views


@pytest.fixture
def _asks_facts_alone() -> Iterator[None]:
    """For tests that ask tables and no view: a third of a small ingest is not for them."""
    with _without_kept_views():
        yield
