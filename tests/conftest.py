"""For all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# Most JVMs of these tests live for seconds: what the second compiler would gain them it would cost twice over.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")

# On a busy machine an example takes as long as it takes.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
