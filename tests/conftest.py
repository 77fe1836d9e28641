"""Settings for every test."""

from hypothesis import settings

# A property is about results, not about time: a busy machine must not make a test fail.
settings.register_profile("tacit", deadline=None)
settings.load_profile("tacit")
