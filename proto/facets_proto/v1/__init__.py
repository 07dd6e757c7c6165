"""Messages and stubs of facets.v1, generated; see facets_proto.generate."""
