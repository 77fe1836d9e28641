"""The untrusted aggregator."""
