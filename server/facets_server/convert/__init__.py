"""Between messages of ``facets.v1`` and ordinary types; the only place that touches both."""
