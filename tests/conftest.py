"""What every test shares: how Hypothesis looks for examples."""

from hypothesis import settings

# The same examples at every run; `pytest --hypothesis-profile=deep` looks for new ones.
settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("deep", deadline=None, max_examples=500)
settings.load_profile("repeatable")
