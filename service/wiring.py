"""Builds store, jobs and engine from Settings: the one place where real things are chosen."""

from __future__ import annotations

from dataclasses import dataclass

from service.config import Settings
from service.engine import Engine
from service.jobs import DaskJobs, Jobs
from service.store import Store

__all__ = ["Services", "build"]


@dataclass(frozen=True)
class Services:
    """What every handler takes first.

    Attributes
    ----------
    settings : Settings
    store : Store
    jobs : Jobs
    engine : Engine or None
        None stands for `matching.engine`, imported on first use.
    """

    settings: Settings
    store: Store
    jobs: Jobs
    engine: Engine | None = None

    def close(self) -> None:
        """Stop the worker and give back the database's connections."""
        self.jobs.close()
        self.store.close()


def build(settings: Settings, engine: Engine | None = None) -> Services:
    """Services on the database and the workers that the settings name.

    Brings the database's schema up to date, gives up plans that a former process left open, and starts the thread
    that watches plans. Call it after a server has forked, not before: threads do not come along.

    Parameters
    ----------
    engine : Engine or None
        Stand-in for `matching.engine`; it must be picklable.

    Raises
    ------
    SettingsError
        ``invalid-settings``: a database URL that cannot be used.
    UnavailableError
        ``unavailable``: the database cannot be reached.
    """
    store = Store(settings.database_url, settings.data_dir)
    store.upgrade()
    folders = {
        "REVMATCH_ENCODER_MODEL": settings.encoder_model,
        "REVMATCH_ENCODER_CACHE": settings.encoder_cache,
        "REVMATCH_MEMORY_LIMIT": settings.memory_limit,
    }
    jobs = DaskJobs(
        store,
        settings.scheduler,
        engine,
        settings.plan_time_limit,
        folders={variable: folder for variable, folder in folders.items() if folder is not None},
    )
    jobs.start()
    return Services(settings, store, jobs, engine)
