"""A headless Chromium, driven through its own pipe: JSON messages that end in a NUL, on file descriptors 3 and 4."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Self

FOUND = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None
)
PATIENCE_S = 60.0
_ON_3_AND_4 = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"


class Browser:
    """One page.  `events` keeps what the page's console, network and exceptions said."""

    def __init__(self, profile: Path) -> None:
        heard, tell = os.pipe()
        listen, said = os.pipe()
        command = [
            str(FOUND), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe",
            "--window-size=1200,1400", "--force-color-profile=srgb", f"--user-data-dir={profile}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", _ON_3_AND_4, str(heard), str(said), *command],
            pass_fds=(heard, said), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(heard)
        os.close(said)
        self._tell, self._listen, self._rest, self._number = tell, listen, b"", 0
        self.events: list[dict[str, Any]] = []
        try:
            self._attach()
        except BaseException:
            self.__exit__()
            raise

    def _attach(self) -> None:
        targets = self.ask("Target.getTargets")["targetInfos"]
        page = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for name in ("Runtime", "Log", "Network", "Page"):
            self.ask(f"{name}.enable")

    _session: str | None = None

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._tell, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                assert "error" not in found, found
                return found["result"]
            self.events.append(found)

    def _next(self) -> dict[str, Any]:
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._listen], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser says nothing"
            block = os.read(self._listen, 1 << 20)
            assert block, "the browser is gone"
            self._rest += block
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def visit(self, path: Path) -> None:
        """Open a file and wait until its scripts say that they are done."""
        self.ask("Page.navigate", url=path.as_uri())
        until = time.monotonic() + PATIENCE_S
        while self.run("document.documentElement?.dataset.ready") != "yes":
            assert time.monotonic() < until, "the page never became ready"
            time.sleep(0.05)

    def said(self, *methods: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") in methods]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._tell)
        self._process.terminate()
        self._process.wait(10)
        os.close(self._listen)
