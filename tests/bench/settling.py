"""When a contender leaves the processors to the next one."""

from __future__ import annotations

import time


def settle() -> None:
    """Wait until no thread of this process is busy any more: those of the one before look for work for a while."""
    for _ in range(400):
        before = time.process_time()
        time.sleep(0.005)
        if time.process_time() - before < 0.0005:
            return
