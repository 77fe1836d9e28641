"""Where the demo plays: an aggregator, a wire, an owner and five sites, each a process."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path
from typing import Self, TypeVar

from tacit.protocol import CampaignState, CampaignStatus, Role
from tacit_client import Owner
from tacit_client.demo.crash import Crash, CrashingSite, nothing
from tacit_client.demo.data import Digits
from tacit_client.demo.errors import DemoFailed
from tacit_client.demo.model import Classifier
from tacit_client.demo.processes import Processes, private_file
from tacit_client.demo.progress import Steps
from tacit_client.demo.sites import Site
from tacit_client.demo.terms import DTYPE, OWNER, SHAPE, Terms
from tacit_client.demo.wire import Wire
from tacit_client.testing import RunningAggregator

PATIENCE = 60.0
_POLL = 0.1

Done = TypeVar("Done")


class Stage:
    """Folder, aggregator, wire and processes of one run; all are gone when the block ends."""

    def __init__(self, folder: Path, terms: Terms, steps: Steps) -> None:
        self.folder = folder
        self.terms = terms
        self.steps = steps
        self.sites: list[Site] = []
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as building:
            with self.steps("The aggregator starts, with a database of its own"):
                folder = self._subfolder("aggregator")
                self.aggregator = building.enter_context(RunningAggregator(folder))
            self.wire = building.enter_context(Wire(self.aggregator.url))
            self._processes = building.enter_context(Processes())
            self._stack = building.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def token_file(self) -> Path:
        """Where the owner's token is."""
        return self.folder / "owner.token"

    def home_of(self, site: str) -> Path:
        """A site's home."""
        return self.folder / "sites" / site / "home"

    def register(self, model: Classifier) -> str:
        """`tacit-aggregator models add`, by the operator; the model's digest."""
        file = self.folder / "digits.onnx"
        model.save(file)
        shape = ",".join(map(str, SHAPE))
        options = ("--name", "digits", "--dtype", DTYPE, "--shape", shape, "--for-sites")
        return str(self.aggregator.command("models", "add", str(file), *options)["digest"])

    def owner(self) -> Owner:
        """The owner of both campaigns."""
        token = self.aggregator.token(Role.OWNER, OWNER)
        private_file(self.token_file, token)
        return Owner(self.wire.listen(OWNER), token, self.aggregator.key)

    def settle(self, digits: Digits) -> None:
        """Five sites, each with its records and its policy."""
        for name, records in digits.at_sites().items():
            site = Site(name, records, self._subfolder(f"sites/{name}"), self._processes)
            site.settle(self.terms.most_epsilon)
            self.sites.append(site)

    def site(self, name: str) -> Site:
        """One of the sites."""
        return next(site for site in self.sites if site.name == name)

    def invite(self, campaign: str, crashing: CrashingSite) -> None:
        """`tacit-aggregator invite`, for every site."""

        def one(site: Site) -> None:
            url = self.wire.listen(site.name, crashing.cut if site is crashing.site else None)
            options = ("--campaign", campaign, "--site", site.name, "--url", url)
            invitation = self.aggregator.command("invite", *options)["invitation"]
            site.receive(campaign, str(invitation))

        self.at_once(one)

    def contribute(
        self, campaign: str, crashing: CrashingSite, while_dead: Callable[[], None] = nothing
    ) -> Crash:
        """Every site joins and contributes, all at once; one of them dies on the way."""

        def one(site: Site) -> Crash | None:
            site.join(campaign)
            crash = None
            if site is crashing.site:
                crash = crashing.contribute(campaign, while_dead)
            else:
                site.contribute(campaign).finish()
            how = "" if crash is None else "; it was killed on the way, and went on"
            self.steps.note(f"         {site.name}: {len(site.records)} records accepted{how}")
            return crash

        crashes = self.at_once(one)
        return next(crash for crash in crashes.values() if crash is not None)

    def at_once(self, work: Callable[[Site], Done]) -> dict[str, Done]:
        """What comes of the same work at every site."""
        with ThreadPoolExecutor(len(self.sites)) as pool:
            running = {pool.submit(work, site): site for site in self.sites}
            try:
                return {running[done].name: done.result() for done in as_completed(running)}
            except BaseException:
                self._processes.stop()  # or the pool would wait for them
                raise

    def images_left(self, digits: Digits) -> int:
        """Search the bytes of the aggregator's files for every image that was sent."""
        images = [image.tobytes() for image in digits.calibration.images]
        ends = time.monotonic() + PATIENCE / 6
        while True:
            files = self.aggregator.database.parent.glob(self.aggregator.database.name + "*")
            content = b"".join(file.read_bytes() for file in files)
            left = sum(image in content for image in images)
            # The log of the database is cut off shortly after the last record was counted.
            if not left or time.monotonic() > ends:
                return left
            time.sleep(_POLL)

    def _subfolder(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True)
        return path


def finished(owner: Owner, campaign: str) -> CampaignStatus:
    """The last status of a campaign that is about to end."""
    for status in owner.follow(campaign, every=2 * _POLL, timeout=PATIENCE):
        if status.state is CampaignState.CLOSED:
            return status
    raise DemoFailed("The campaign did not end in time.")
