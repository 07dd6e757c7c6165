"""Adapters of popular frameworks, one module per framework, each with an extra of the same name.

The client itself imports none of them: ``from facets_client.adapters.langchain import FacetsRetriever`` needs
LangChain, and nothing else does.
"""
