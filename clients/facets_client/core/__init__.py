"""What every call of the client needs: the channel, retries, deadlines, batches, errors."""
