"""A fuzzer of every rpc: mutations of valid calls, made from the descriptors of the protos."""
