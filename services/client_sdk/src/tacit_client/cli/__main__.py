"""`python -m tacit_client.cli`: the same as `tacit`."""

from tacit_client.cli import main

main()
