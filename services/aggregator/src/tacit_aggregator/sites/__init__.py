"""Sites: enrolling in a campaign and leaving it."""
