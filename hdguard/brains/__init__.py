"""Who judges frames: FastBrains give verdicts, SlowBrains review."""
