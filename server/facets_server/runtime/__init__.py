"""Shared infrastructure of all services: admission, batching, deadlines, errors, health, the model registry."""
