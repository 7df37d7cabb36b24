"""Whether the service can work."""

from __future__ import annotations

from service.handlers.common import Record
from service.wiring import Services

__all__ = ["health"]


def health(services: Services) -> Record:
    """``{"status": "ok" | "degraded", "database": "ok" | "down", "worker": "ok" | "down"}``; never raises."""
    database, worker = services.store.ping(), services.jobs.alive()
    return {
        "status": "ok" if database and worker else "degraded",
        "database": "ok" if database else "down",
        "worker": "ok" if worker else "down",
    }
