"""Bundled clips. Their place; nothing of it is built yet."""
