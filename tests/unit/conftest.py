"""Settings of tests with generated examples."""

from hypothesis import settings

settings.register_profile("facets", max_examples=50, deadline=None)  # on a busy machine any example may take a second
settings.load_profile("facets")
