"""hdguard watches a household robot through its cameras and stops it before it does harm."""

__version__ = "0.1.0"
