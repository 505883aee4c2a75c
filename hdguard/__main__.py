"""`python -m hdguard` is the `hdguard` command."""

from hdguard.cli import main

main()
