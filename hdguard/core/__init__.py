"""The pure core: values, events, actions and the guard that decides. No I/O, no clock."""
