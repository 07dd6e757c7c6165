"""The gRPC server of Facets."""
