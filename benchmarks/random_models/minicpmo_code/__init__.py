"""The code files that are copied into a random MiniCPM-o-shaped model's folder."""
