"""Vector indexes: facets in, candidate rows out, and the snapshots they are kept in."""
