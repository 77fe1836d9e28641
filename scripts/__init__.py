"""What the Makefile runs before there is an environment: standard library only."""
