"""Shared by all rooms: channels, retries, requests, errors, HTML."""
