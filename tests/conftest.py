"""For all tests."""

from __future__ import annotations

import os

# Most JVMs of these tests live for seconds: what the second compiler would gain them it would cost twice over.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
