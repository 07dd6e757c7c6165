"""Facets inside the frameworks people use already, one module a framework, each behind an extra of its own name.

Nothing here is imported by the client itself: ``from facets_client.adapters.langchain import FacetsRetriever`` needs
LangChain, and nothing else does.
"""
