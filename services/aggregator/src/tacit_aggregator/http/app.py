"""The application: its routes, and the threads that start and stop with it."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool

from tacit_aggregator.campaigns.documents import Documents
from tacit_aggregator.campaigns.routes import router as campaigns
from tacit_aggregator.clock import Clock
from tacit_aggregator.database.engine import Database
from tacit_aggregator.http import openapi, problems
from tacit_aggregator.http.bodies import Bodies
from tacit_aggregator.http.connections import STOPPING
from tacit_aggregator.http.edge import Edge
from tacit_aggregator.http.health import router as health
from tacit_aggregator.http.services import Services
from tacit_aggregator.http.tokens import Tokens
from tacit_aggregator.ingest.routes import router as ingest
from tacit_aggregator.ingest.writer import Writer
from tacit_aggregator.keys.service import read_secret
from tacit_aggregator.metrics import Metrics
from tacit_aggregator.models.files import ModelFiles
from tacit_aggregator.models.routes import router as models
from tacit_aggregator.results.routes import router as results
from tacit_aggregator.results.service import Thresholds
from tacit_aggregator.rounds.moving import Mover
from tacit_aggregator.rounds.routes import router as rounds
from tacit_aggregator.rounds.standing import reader
from tacit_aggregator.rounds.thread import Rounds
from tacit_aggregator.rounds.watch import Watch
from tacit_aggregator.scoring.backlog import Backlog
from tacit_aggregator.scoring.counting import Counting
from tacit_aggregator.settings import Settings
from tacit_aggregator.sites.routes import router as sites


def create_app(settings: Settings, database: Database, clock: Clock = time.time) -> FastAPI:
    """The application over a migrated database; `app.state.metrics.registry` has its numbers."""
    development = settings.environment == "development"
    app = FastAPI(
        title="Tacit aggregator",
        version=version("tacit-aggregator"),
        description="Campaigns, uploads of privatized labels and answers, and signed thresholds.",
        openapi_url="/openapi.json",
        openapi_tags=openapi.TAGS,
        docs_url="/docs" if development else None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_running,
    )
    database.clock = clock
    app.state.services = None
    app.state.stopping = False
    app.state.settings = settings
    app.state.database = database
    app.state.metrics = Metrics()
    problems.install(app)
    openapi.install(app)
    # Routes are tried in this order, so the one that is asked for most comes first, before those of
    # the documentation. They are put in as they are: `include_router` would wrap each, and every
    # request pay for it.
    routers = (ingest, rounds, campaigns, sites, results, models, health)
    app.router.routes[:0] = [route for router in routers for route in router.routes]
    app.add_middleware(Edge, metrics=app.state.metrics)
    return app


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
    services = await run_in_threadpool(_start, app)
    app.state.services = services
    try:
        # Uvicorn ends this context when all requests are answered, so connections tell of it.
        yield {STOPPING: services.watch.stop}
    finally:
        app.state.services = None
        await run_in_threadpool(services.rounds.stop)
        await run_in_threadpool(services.writer.stop)
        await run_in_threadpool(services.counting.stop)


def _start(app: FastAPI) -> Services:
    settings, database = app.state.settings, app.state.database
    metrics: Metrics = app.state.metrics
    database.observe(metrics.transaction)
    secret = read_secret(settings)
    documents = Documents(database)
    backlog = Backlog(settings.most_pending_bytes, metrics)
    counting = Counting(
        database,
        documents,
        backlog,
        secret,
        workers=settings.scoring_workers,
        seconds=settings.scoring_seconds,
        metrics=metrics,
    )
    read = reader(database, documents)
    watch = Watch(read, metrics)
    services = Services(
        settings=settings,
        database=database,
        secret=secret,
        metrics=metrics,
        tokens=Tokens(database),
        bodies=Bodies(settings),
        documents=documents,
        thresholds=Thresholds(database, documents, secret),
        model_files=ModelFiles(),
        backlog=backlog,
        writer=Writer(database, backlog, metrics),
        counting=counting,
        rounds=Rounds(Mover(database, documents, secret, metrics), watch, read),
        watch=watch,
    )
    counting.start()
    services.writer.start()
    services.rounds.start()
    return services
