#!/bin/sh
# Writes v1/ from the protos, offline: apt install protobuf-compiler protoc-gen-go-1-5 protoc-gen-go-grpc
set -eu
here=$(cd "$(dirname "$0")" && pwd)
protos=$here/../../proto
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
set --
for path in "$protos"/facets_proto/v1/*.proto; do
    name=facets_proto/v1/$(basename "$path")
    set -- "$@" "--go_opt=M$name=facets.dev/client/v1" "--go-grpc_opt=M$name=facets.dev/client/v1"
done
protoc -I "$protos" -I "$protos/facets_proto" --go_out="$out" --go-grpc_out="$out" "$@" "$protos"/facets_proto/v1/*.proto
rm -f "$here"/v1/*.go
cp "$out"/facets.dev/client/v1/*.go "$here/v1/"
