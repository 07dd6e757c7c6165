"""The HTTP gateway: every rpc as JSON, OpenAI's and TEI's routes, the playground; it forwards to the gRPC server."""
