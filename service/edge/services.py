"""The services of the running application."""

from __future__ import annotations

from flask import current_app

from service.wiring import Services

__all__ = ["EXTENSION", "services"]

EXTENSION = "revmatch"  # key in Flask's app.extensions


def services() -> Services:
    """Store, jobs and settings the application was made with."""
    found: Services = current_app.extensions[EXTENSION]
    return found
