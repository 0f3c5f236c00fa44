"""Waiting for something that happens soon, without measuring how soon."""

import time


def until(condition, what: str, seconds: float = 60):
    """The first true value of `condition()`; fails naming `what` when it never comes."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"waited {seconds} s in vain for {what}"
        time.sleep(0.02)
