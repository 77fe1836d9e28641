"""`tacit demo`: two whole campaigns on this machine, with real processes over loopback.

`data` and `model` make the setting, `sites` is what runs at a site, `wire` what lies between, and
`stage` where it all is. `labels` and `scores` are the campaigns, `story` the order in which they
happen; `words`, `narrowing` and `screen` are what a person sees.
"""

from tacit_client.demo.command import run

__all__ = ["run"]
