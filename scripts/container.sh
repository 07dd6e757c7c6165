#!/usr/bin/env bash
# Builds the container image, and runs the integration tests against it: container.sh build | test
#
# BUILD_ARGS go to docker or podman, e.g. BUILD_ARGS="--build-arg TORCH_BACKEND=cuda".
set -euo pipefail
cd "$(dirname "$0")/.."

IMAGE=${IMAGE:-facets:latest}
BIN=${BIN:-.venv/bin}
PORT=${CONTAINER_PORT:-50951}
MAX_IMAGE_MB=${MAX_IMAGE_MB:-1100} # more with CUDA
read -r -a build_args <<<"${BUILD_ARGS:-}"
read -r -a pytest_args <<<"${PYTEST_ARGS:-}"

fail() { echo "container: $*" >&2; exit 1; }

for engine in docker podman; do
    if "$engine" info >/dev/null 2>&1; then ENGINE=${ENGINE:-$engine}; fi
done
[ -n "${ENGINE:-}" ] || fail "docker or podman is needed, and neither works here"

build() { "$ENGINE" build "${build_args[@]}" --tag "$IMAGE" .; }

run_tests() {
    bytes=$("$ENGINE" run --rm --user 0 --network none --entrypoint du "$IMAGE" -bsx / | cut -f1)
    [ "$bytes" -le "$((MAX_IMAGE_MB * 1000000))" ] || fail "the image has $((bytes / 1000000)) MB, at most $MAX_IMAGE_MB"
    container=$("$ENGINE" run --detach --read-only --tmpfs /tmp --publish "127.0.0.1:$PORT:50051" "$IMAGE")
    trap '"$ENGINE" rm --force --volumes "$container" >/dev/null' EXIT
    end=$((SECONDS + 300))
    until "$BIN/facets" --target "127.0.0.1:$PORT" health >/dev/null 2>&1; do
        [ "$("$ENGINE" inspect --format '{{.State.Running}}' "$container")" = true ] || fail "the server ended while starting"
        [ "$SECONDS" -lt "$end" ] || fail "the server was not serving within 300 s"
        sleep 2
    done
    "$ENGINE" exec "$container" facets health
    FACETS_TARGET=127.0.0.1:$PORT "$BIN/python" -m pytest tests/integration "${pytest_args[@]}"
    "$ENGINE" stop --time 30 "$container" >/dev/null
    code=$("$ENGINE" inspect --format '{{.State.ExitCode}}' "$container")
    [ "$code" = 0 ] || fail "after SIGTERM the server ended with code $code, expected 0"
}

case ${1:-} in
    build) build ;;
    test) build && run_tests ;;
    *) fail "expected build or test, got ${1:-nothing}" ;;
esac
