"""Fresh coins: never the same twice, in whatever process or thread."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tacit.mechanisms import Coins, FreshCoins, RecordCoins


def drawn(coins: FreshCoins, count: int) -> set[bytes]:
    return {block.tobytes() for block in coins.blocks(0, count, 0)}


def test_both_sources_are_coins() -> None:
    assert isinstance(FreshCoins(), Coins)
    assert isinstance(RecordCoins(bytes(32), []), Coins)


def test_blocks_are_two_words_per_row() -> None:
    blocks = FreshCoins().blocks(5, 12, 0)
    assert blocks.shape == (7, 2)
    assert blocks.dtype == np.uint64


def test_the_same_rows_and_attempt_give_other_blocks_at_every_call() -> None:
    coins = FreshCoins()
    assert len(set.union(*(drawn(coins, 1000) for _ in range(10)))) == 10_000


def test_threads_that_share_coins_draw_different_blocks() -> None:
    coins = FreshCoins()
    with ThreadPoolExecutor(4) as pool:
        draws = list(pool.map(lambda _: drawn(coins, 1000), range(40)))
    assert len(set.union(*draws)) == 40_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_draws_different_blocks() -> None:
    coins = FreshCoins()
    coins.blocks(0, 1, 0)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, coins.blocks(0, 100, 0).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    here = coins.blocks(0, 100, 0).tobytes()
    there = os.read(reading, 1600)
    os.close(reading)
    os.close(writing)
    assert len(there) == len(here) == 1600
    assert len({(here + there)[start : start + 16] for start in range(0, 3200, 16)}) == 200
