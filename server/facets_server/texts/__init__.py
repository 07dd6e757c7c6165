"""EmbeddingService, SimilarityService and SummarizationService, and the models behind them."""
