"""Names of the services of facets.v1, generated; see facets_proto.generate."""

SERVICES: tuple[str, ...] = (
    "facets.v1.CollectionService",
    "facets.v1.DocumentService",
    "facets.v1.ModelService",
    "facets.v1.RecommendationService",
    "facets.v1.RelationService",
    "facets.v1.EmbeddingService",
    "facets.v1.SimilarityService",
    "facets.v1.SummarizationService",
    "facets.v1.TopicService",
)
