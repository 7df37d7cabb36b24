"""The database behind the service."""

from service.store.store import Store

__all__ = ["Store"]
