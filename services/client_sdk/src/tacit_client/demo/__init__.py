"""`tacit demo`: a whole campaign on this machine, with real processes over loopback.

`data` and `model` make the setting, `sites` is what runs at a site, `wire` what lies between,
`story` the order in which it happens; `words` and `screen` are what a person sees.
"""

from tacit_client.demo.command import run

__all__ = ["run"]
