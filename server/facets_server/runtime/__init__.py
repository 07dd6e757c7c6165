"""What every service runs on: admission, batching, deadlines, errors, health, the model registry."""
