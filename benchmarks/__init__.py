"""Performance benches; they import hdguard, never the reverse."""
