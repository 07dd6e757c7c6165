"""The laboratory of Facets: losses, training and evaluation of the models that the library serves."""
