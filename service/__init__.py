"""The service: a thin HTTP edge, a database and workers around `matching`."""
