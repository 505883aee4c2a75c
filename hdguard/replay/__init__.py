"""What `hdguard replay` is made of: datasets, runs, scores."""
