"""What happens in the demo, in its order; every party is a process of its own."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.conformal import Calibration, split
from tacit.protocol import Campaign, CampaignState, CampaignStatus, Opened, Role
from tacit_client import Owner, VerifiedThreshold
from tacit_client.demo.data import Digits, digits
from tacit_client.demo.errors import DemoFailed
from tacit_client.demo.figures import Figures, Result
from tacit_client.demo.messages import Message, one_of_each
from tacit_client.demo.model import Classifier
from tacit_client.demo.processes import Processes, private_file
from tacit_client.demo.progress import Steps
from tacit_client.demo.sites import Crash, CrashingSite, Site
from tacit_client.demo.terms import CLASS_NAMES, DTYPE, SHAPE, Terms
from tacit_client.demo.wire import Wire
from tacit_client.testing import RunningAggregator

OWNER = "Demo"
CRASHES = "Birch"
SHOWN = "Fir"
"""The site whose messages are shown."""
_PATIENCE = 60.0

Done = TypeVar("Done")


@dataclass(frozen=True)
class Setting:
    """What there is before the campaign: a trained model, and records at five sites."""

    digits: Digits = field(repr=False)
    model: Classifier

    @property
    def held_out(self) -> NDArray[np.float64]:
        """The model's probabilities for images that nobody calibrated on."""
        return self.model.probabilities(self.digits.held_out.images)

    def accuracy(self) -> float:
        """How often the model's first guess is right on held-out images."""
        return float((self.held_out.argmax(axis=1) == self.digits.held_out.labels).mean())

    def figures(self, calibration: Calibration) -> Figures:
        """What a threshold is worth on held-out images."""
        return Figures.of(calibration, self.held_out, self.digits.held_out.labels)

    def without_privacy(self, terms: Terms) -> Calibration:
        """Split conformal prediction: every site hands over its images and its true labels."""
        records = self.digits.calibration
        probabilities = self.model.probabilities(records.images)
        return split(probabilities, records.labels, score=terms.score, alpha=terms.alpha)


@dataclass(frozen=True)
class Outcome:
    """All that is told at the end."""

    terms: Terms
    setting: Setting
    campaign: Opened[Campaign]
    status: CampaignStatus
    not_private: Calibration
    nominal: VerifiedThreshold
    starred: VerifiedThreshold
    crash: Crash
    messages: list[Message]
    keys_erased: int
    """Sites that have learnt that all is counted, and erased the key of their coins."""
    images_left: int
    """Images still found in the aggregator's files after they were counted."""

    def results(self) -> dict[str, Result]:
        """The results under the names that people see."""
        return {
            "not private": self.not_private,
            "LDP-CP-L": self.nominal.outcome,
            "LDP-CP-L*": self.starred.outcome,
        }


class Stage:
    """Folder, aggregator, wire and processes of one run; all are gone when the block ends."""

    def __init__(self, folder: Path, terms: Terms, steps: Steps) -> None:
        self.folder = folder
        self._terms = terms
        self._steps = steps
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as building:
            with self._steps("The aggregator starts, with a database of its own"):
                folder = self._subfolder("aggregator")
                self.aggregator = building.enter_context(RunningAggregator(folder))
            self._wire = building.enter_context(Wire(self.aggregator.url))
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

    def play(self) -> Outcome:
        """The whole story."""
        with self._steps("A small network is trained, and the operator registers it"):
            setting = Setting(records := digits(), Classifier(records.training))
            model = self._register(setting.model)
        with self._steps("The owner publishes a campaign, and five sites are invited"):
            owner = self._owner()
            campaign = self._publish(owner, model)
            sites, crashing = self._invite(setting, campaign.digest)
        with owner:
            with self._steps("The sites join and contribute, all at once, as processes"):
                crash = self._contribute(sites, crashing)
            with self._steps("The owner fetches the thresholds and verifies them"):
                status = self._finished(owner, campaign.digest)
                nominal = owner.threshold(campaign.digest, "nominal", wait=_PATIENCE)
                starred = owner.threshold(campaign.digest, "starred", wait=_PATIENCE)
        with self._steps("The sites write down what was counted, and erase their keys"):
            settled = self._at_once(sites, Site.settled)
        return Outcome(
            terms=self._terms,
            setting=setting,
            campaign=campaign,
            status=status,
            not_private=setting.without_privacy(self._terms),
            nominal=nominal,
            starred=starred,
            crash=crash,
            messages=one_of_each(self._wire.exchanges(), SHOWN),
            keys_erased=sum(settled.values()),
            images_left=self._images_left(setting),
        )

    def _subfolder(self, name: str) -> Path:
        path = self.folder / name
        path.mkdir(parents=True)
        return path

    def _register(self, model: Classifier) -> str:
        """`tacit-aggregator models add`, by the operator; the model's digest."""
        file = self.folder / "digits.safetensors"
        model.save(file)
        shape = ",".join(map(str, SHAPE))
        options = ("--name", "digits", "--dtype", DTYPE, "--shape", shape)
        module = ("--module", "tacit_client.demo.model:Network")
        return str(self.aggregator.command("models", "add", str(file), *options, *module)["digest"])

    def _owner(self) -> Owner:
        token = self.aggregator.token(Role.OWNER, OWNER)
        private_file(self.token_file, token)
        return Owner(self._wire.listen(OWNER), token, self.aggregator.key)

    def _publish(self, owner: Owner, model: str) -> Opened[Campaign]:
        terms = self._terms
        return owner.create(
            title=terms.title,
            classes=CLASS_NAMES,
            epsilon=terms.epsilon,
            alpha=terms.alpha,
            delta=terms.delta,
            planned_n=terms.planned_n,
            closes=terms.open_for,
            evidence=terms.evidence(model),
            score=terms.score,
        )

    def _invite(self, setting: Setting, campaign: str) -> tuple[list[Site], CrashingSite]:
        parts = setting.digits.at_sites()
        sites = [
            Site(name, records, self._subfolder(f"sites/{name}"), self._processes)
            for name, records in parts.items()
        ]
        crashing = CrashingSite(next(site for site in sites if site.name == CRASHES))
        self._at_once(sites, lambda site: self._invite_site(site, campaign, crashing))
        return sites, crashing

    def _invite_site(self, site: Site, campaign: str, crashing: CrashingSite) -> None:
        url = self._wire.listen(site.name, crashing.cut if site is crashing.site else None)
        site.settle(most_epsilon=max(4.0, self._terms.epsilon))
        options = ("--campaign", campaign, "--site", site.name, "--url", url)
        site.receive(str(self.aggregator.command("invite", *options)["invitation"]))

    def _contribute(self, sites: list[Site], crashing: CrashingSite) -> Crash:
        def one(site: Site) -> Crash | None:
            site.join()
            crash = None
            if site is crashing.site:
                crash = crashing.contribute()
            else:
                site.contribute().finish()
            self._tell(site, crash)
            return crash

        crashes = self._at_once(sites, one)
        return next(crash for crash in crashes.values() if crash is not None)

    def _tell(self, site: Site, crash: Crash | None) -> None:
        how = "" if crash is None else "; it was killed on the way, and went on"
        self._steps.note(f"         {site.name}: {len(site.records)} records accepted{how}")

    def _at_once(self, sites: list[Site], work: Callable[[Site], Done]) -> dict[str, Done]:
        """What comes of the same work at every site."""
        with ThreadPoolExecutor(len(sites)) as pool:
            running = {pool.submit(work, site): site for site in sites}
            try:
                return {running[done].name: done.result() for done in as_completed(running)}
            except BaseException:
                self._processes.stop()  # or the pool would wait for them
                raise

    def _finished(self, owner: Owner, campaign: str) -> CampaignStatus:
        for status in owner.follow(campaign, every=0.2, timeout=_PATIENCE):
            if status.state is CampaignState.CLOSED:
                return status
        raise DemoFailed("The campaign did not end in time.")

    def _images_left(self, setting: Setting) -> int:
        """Search the bytes of the aggregator's files for every image that was sent."""
        images = [image.tobytes() for image in setting.digits.calibration.images]
        ends = time.monotonic() + _PATIENCE / 6
        while True:
            files = self.aggregator.database.parent.glob(self.aggregator.database.name + "*")
            content = b"".join(file.read_bytes() for file in files)
            left = sum(image in content for image in images)
            # The log of the database is cut off shortly after the last record was counted.
            if not left or time.monotonic() > ends:
                return left
            time.sleep(0.1)
