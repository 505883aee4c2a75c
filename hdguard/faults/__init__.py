"""Faults that are really injected into a running stack, and how long each one takes to be met."""
