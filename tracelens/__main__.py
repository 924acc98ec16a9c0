"""``python -m tracelens`` and the ``tracelens`` command."""

from __future__ import annotations

from tracelens.cli import main

if __name__ == "__main__":
    main()
