"""The one pipeline, live and replayed, at both paces."""
