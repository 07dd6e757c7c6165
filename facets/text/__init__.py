"""Sentences, tokens and the vocabulary."""

from facets.text.tokenizer import Sentence, Token, Tokenizer
from facets.text.vocabulary import Vocabulary

__all__ = ["Sentence", "Token", "Tokenizer", "Vocabulary"]
