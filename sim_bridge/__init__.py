"""VirtualHome: the simulator's bridge. Its place; nothing of it is built yet."""
