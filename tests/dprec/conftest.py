"""Settings of the property tests."""

from hypothesis import settings

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("dprec", deadline=None)
settings.load_profile("dprec")
