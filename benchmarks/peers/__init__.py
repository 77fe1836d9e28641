"""Other libraries of local differential privacy, run in an environment of their own."""
