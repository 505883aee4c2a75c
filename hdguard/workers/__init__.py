"""Where brains sit: inline, on a thread, or in another process."""
