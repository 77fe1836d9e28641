"""Five sites calibrate a model on labels that they do not disclose.

Data and model are those of `tacit demo`. `sites` is what runs at a site, `campaigns` what the
sites and the aggregator do together, `words`, `screen` and `picture` what a person sees, `main` the
order.
"""
