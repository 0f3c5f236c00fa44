"""The seed of random tests: the commit, so that each commit tries other cases and anybody can repeat them."""

import os
import subprocess
from pathlib import Path


def commit_seed() -> int:
    """`TACHO_TEST_SEED` as a number, or one made of the commit's id. It is printed, and pytest shows it for a failed test."""
    text = os.environ.get("TACHO_TEST_SEED")
    if not text:
        command = ["git", "rev-parse", "HEAD"]
        text = f"0x{subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True).stdout[:12]}"
    print(f"repeat with TACHO_TEST_SEED={text}")
    return int(text, 0)
