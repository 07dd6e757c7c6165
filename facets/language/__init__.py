"""Reads texts: blocks, sentences, tokens, terms; the vocabulary and its word vectors."""

from facets.language.sentences import Sentence
from facets.language.tokenizer import Token, Tokenizer
from facets.language.vectors import WordVectors
from facets.language.vocabulary import Vocabulary

__all__ = ["Sentence", "Token", "Tokenizer", "Vocabulary", "WordVectors"]
