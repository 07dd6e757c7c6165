"""Code shared by all tasks: channels, retries, requests, errors, HTML."""
