#!/bin/sh
# Tests the client: with modules where they can be fetched, else offline with Debian's packages
# (apt install golang-go golang-google-grpc-dev golang-google-protobuf-dev). FACETS_TARGET names a server to speak to.
set -eu
cd "$(dirname "$0")"
if [ -f go.sum ]; then
    go vet . && exec go test -count=1 ./...
fi
path=$(mktemp -d)
trap 'rm -rf "$path"' EXIT
mkdir -p "$path/src/facets.dev"
ln -s "$PWD" "$path/src/facets.dev/client"
export GO111MODULE=off GOFLAGS=-p=1 GOPATH="$path:/usr/share/gocode"
cd "$path/src/facets.dev/client"
go vet .
go test -count=1 -v .
