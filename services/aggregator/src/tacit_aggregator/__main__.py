"""`python -m tacit_aggregator` is `tacit-aggregator`."""

from tacit_aggregator.cli import main

if __name__ == "__main__":  # not in the worker processes that are spawned from here
    main()
