"""Between protobuf messages and ordinary types: the only part of the client that knows both."""
