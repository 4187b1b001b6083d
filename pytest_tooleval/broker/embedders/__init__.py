"""Embedders: models that turn texts into vectors, so that what is alike in meaning lies close together."""
