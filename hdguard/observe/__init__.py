"""What people, probes and publishers see and may ask of a running guard, over HTTP."""
