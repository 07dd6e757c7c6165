#!/bin/sh
# Generates the Go code of the protos and builds the example, offline, from Debian's packages:
#
#     apt install golang golang-google-grpc-dev protoc-gen-go-1-5 protoc-gen-go-grpc
#     examples/go/build.sh FOLDER          # writes FOLDER/search; PROTOC names another protoc
set -eu
here=$(cd "$(dirname "$0")" && pwd)
protos=$here/../../proto
out=$1
protoc=${PROTOC:-protoc}
package=example.org/facets/v1
set --
for room in common models texts documents relations papers; do
    set -- "$@" "--go_opt=Mfacets_proto/v1/$room.proto=$package" "--go-grpc_opt=Mfacets_proto/v1/$room.proto=$package"
done
mkdir -p "$out/src/example.org/search"
# shellcheck disable=SC2086
$protoc -I "$protos" -I "$protos/facets_proto" --go_out="$out/src" --go-grpc_out="$out/src" "$@" \
    "$protos"/facets_proto/v1/*.proto
cp "$here/main.go" "$out/src/example.org/search/"
# Debian's libraries lie in a GOPATH; with modules, `go mod init` and `go get` take their place.
export GO111MODULE=off GOFLAGS=-p=1 GOPATH="$out:/usr/share/gocode" GOCACHE="${GOCACHE:-$out/cache}"
go vet example.org/search
go build -o "$out/search" example.org/search
