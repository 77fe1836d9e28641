"""Numbers for Prometheus, in a registry of the application's own."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 60.0)


class Metrics:
    """What is counted; no label of any of these names a site, a campaign or a person."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self._requests = Counter(
            "tacit_requests", "Requests answered", ("method", "route", "status"), registry=registry
        )
        self._request_seconds = Histogram(
            "tacit_request_seconds",
            "Seconds until a request was answered",
            ("route",),
            registry=registry,
            buckets=_SECONDS,
        )
        self._uploads = Counter(
            "tacit_uploads", "Uploads by what became of them", ("state",), registry=registry
        )
        self._records = Counter(
            "tacit_records", "Records by what became of them", ("state",), registry=registry
        )
        self._rounds = Counter(
            "tacit_rounds", "Rounds of score campaigns that moved", ("event",), registry=registry
        )
        self._answers = Counter(
            "tacit_answers",
            "Answers in rounds by what became of them",
            ("state",),
            registry=registry,
        )
        self.polls_waiting = Gauge(
            "tacit_polls_waiting", "Requests that wait for the next question", registry=registry
        )
        self.pending_records = Gauge(
            "tacit_pending_records", "Records accepted and not counted yet", registry=registry
        )
        self.fold_seconds = Histogram(
            "tacit_fold_seconds",
            "Seconds from taking a batch to counting it",
            registry=registry,
            buckets=_SECONDS,
        )
        self._transactions = Histogram(
            "tacit_transaction_seconds",
            "Seconds of committed transactions",
            ("name",),
            registry=registry,
            buckets=_SECONDS,
        )
        # Looking a child up by its labels costs more than counting; there are few of them.
        self._children: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """One request was answered."""
        key = (method, route, status)
        if key not in self._children:
            counter = self._requests.labels(method, route, str(status))
            self._children[key] = (counter, self._request_seconds.labels(route))
        counter, histogram = self._children[key]
        counter.inc()
        histogram.observe(seconds)

    def uploads(self, state: str, uploads: int, records: int) -> None:
        """Uploads were accepted, counted or dropped."""
        self._uploads.labels(state).inc(uploads)
        self._records.labels(state).inc(records)

    def round_moved(self, event: str, happened: bool) -> None:
        """A round was opened, closed or extended, if that happened here."""
        if happened:
            self._rounds.labels(event).inc()

    def answers(self, state: str, records: int) -> None:
        """Answers were accepted, or came too late."""
        if records:
            self._answers.labels(state).inc(records)

    def transaction(self, name: str, seconds: float) -> None:
        """A transaction was committed."""
        self._transactions.labels(name).observe(seconds)
