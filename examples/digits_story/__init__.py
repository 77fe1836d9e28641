"""Five sites calibrate a model on labels that they do not disclose.

`data` and `model` make the setting, `sites` is what runs at a site, `campaigns` what the sites and
the aggregator do together, `words`, `screen` and `picture` what a person sees, `main` the order.
"""
