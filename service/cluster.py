"""The Dask side of running plans: a local worker process or a cluster, started on first use."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

import structlog

from service.engine import Engine
from service.evidence import answer_questions
from service.worker import run_plan

__all__ = ["Cluster"]

log = structlog.get_logger(__name__)

CONNECT_SECONDS = 5  # to a scheduler elsewhere; the monitor must come back well within its lease
SETTINGS = {
    # a plan whose worker died is not run again by itself
    "distributed.scheduler.allowed-failures": 0,
    # the flow solver holds the interpreter's lock, so a busy worker may be silent for minutes: silence is no death
    "distributed.scheduler.worker-ttl": None,
}


class Cluster:
    """Workers that run plans. Not safe in several threads: one monitor thread uses it.

    Parameters
    ----------
    database_url : str
        Handed to a local worker in its environment.
    scheduler : str or None
        Address of a Dask scheduler, whose workers read REVMATCH_DATABASE_URL from their own environment; None
        starts one worker process on this machine.
    engine : Engine or None
        Stand-in for `matching.engine`, pickled along with each plan.
    time_limit : float
        Seconds the engine may take.
    folders : mapping of str to Path or int
        Environment variable -> folder, or bytes, for a local worker.
    """

    def __init__(
        self,
        database_url: str,
        scheduler: str | None,
        engine: Engine | None,
        time_limit: float,
        folders: Mapping[str, Path | int] = MappingProxyType({}),
    ) -> None:
        self._database_url, self._scheduler = database_url, scheduler
        self._folders = {variable: str(folder) for variable, folder in folders.items()}
        self._engine, self._time_limit = engine, time_limit
        self._client: Any = None
        self._local: Any = None

    @property
    def is_started(self) -> bool:
        """Whether there is a connection to a scheduler."""
        return self._client is not None and self._client.status == "running"

    def start(self) -> None:
        """Connect, or start the local worker. Raises OSError where the scheduler does not answer."""
        if self.is_started:
            return
        self.close()
        # imported here: it costs a second that a process which never runs a plan should not pay
        distributed: Any = import_module("distributed")
        config: Any = import_module("dask.config")

        if self._scheduler is not None:
            self._client = distributed.Client(self._scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
            return
        with config.set(SETTINGS):
            self._local = distributed.LocalCluster(
                n_workers=1,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                # no dashboard; its server answers health checks all the same, here on any free port
                scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                memory_limit=0,  # the default would be this process's share of the cores, too little for a big venue
                silence_logs=logging.ERROR,
                # the complete URL has the password in it already
                env={
                    "REVMATCH_DATABASE_URL": self._database_url,
                    "REVMATCH_DATABASE_PASSWORD_FILE": "",
                    **self._folders,
                },
            )
            self._client = distributed.Client(self._local, set_as_default=False)
        log.info("worker_started")

    @property
    def capacity(self) -> int:
        """Plans that can run at the same time."""
        return max(1, len(self._client.nthreads())) if self._scheduler is not None else 1

    def is_healthy(self) -> bool:
        """Whether at least one worker is there, or about to be."""
        # the local worker's nanny replaces it within seconds whenever it dies
        return self.is_started and (self._local is not None or bool(self._client.scheduler_info()["workers"]))

    def submit(self, plan_id: str) -> Any:
        """Start a plan; returns its future."""
        future = self._client.submit(
            run_plan, plan_id, engine=self._engine, time_limit=self._time_limit, key=f"plan-{plan_id}", pure=False
        )
        if self._scheduler is not None:
            # the cluster outlives this process, and then so does the plan
            distributed: Any = import_module("distributed")
            distributed.fire_and_forget(future)
        return future

    def ask(self, plan_id: str, questions: Sequence[tuple[str, str]]) -> Any:
        """Have evidence worked out; returns the future."""
        return self._client.submit(answer_questions, plan_id, list(questions), engine=self._engine, pure=False)

    def worker_of(self, future: Any) -> str | None:
        """Dask's address of the worker that is at something; None where it is nowhere."""
        return next((address for address, keys in self._client.processing().items() if future.key in keys), None)

    def kill_worker(self, address: str | None) -> None:
        """End the worker process a plan does not leave by itself; a new one takes its place.

        Parameters
        ----------
        address : str or None
            Dask's address of the worker; the local one needs none.
        """
        log.warning("worker_killed", worker=address)
        if self._local is not None:
            for nanny in list(self._local.workers.values()):
                if nanny.pid:
                    # native code that never returns ignores anything milder; the nanny starts a new process
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(nanny.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
        elif self._client is not None and address:
            self._client.restart_workers([address], timeout=30, raise_for_error=False)

    def close(self) -> None:
        """Stop the local worker, or leave the cluster."""
        client, local = self._client, self._local
        self._client = self._local = None
        for part in (client, local):
            if part is not None:
                with contextlib.suppress(Exception):  # half-dead parts raise many things, and all of them are over
                    part.close(timeout=10)
