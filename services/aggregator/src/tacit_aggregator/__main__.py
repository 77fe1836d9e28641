"""`tacit-aggregator`, and `python -m tacit_aggregator`."""


def main() -> None:
    """Run the command line."""
    # Imported here: worker processes import this module again, and need nothing of the rest.
    from tacit_aggregator.cli import main as run  # noqa: PLC0415 -- see above

    run()


if __name__ == "__main__":
    main()
