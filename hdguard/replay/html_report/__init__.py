"""`hdguard report`: a run as one page that a stranger can read, offline and for years.

Only its command imports it, for Matplotlib and Jinja are an extra.
"""
