"""The contract of the service: the protos of facets.v1 and the code generated from them."""
