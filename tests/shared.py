"""Where the handed data lies, for tests that compare with it; absent on a user's machine."""

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("REVMATCH_SHARED", Path(__file__).resolve().parents[2] / "shared"))

needs_shared = pytest.mark.skipif(not (SHARED / "data").is_dir(), reason=f"no data folder at {SHARED}")
