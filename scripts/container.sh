#!/usr/bin/env bash
# Builds the container image, and tests it: container.sh build | test
#
# Takes docker, podman or buildah, whichever works; ENGINE=none skips the image. Where no engine works, the
# integration tests run against a server process started with the image's command and environment.
# BUILD_ARGS are handed to the engine's build, e.g. BUILD_ARGS="--build-arg TORCH_BACKEND=cuda".
set -euo pipefail
cd "$(dirname "$0")/.."

IMAGE=${IMAGE:-facets:latest}
read -r -a build_args <<<"${BUILD_ARGS:-}"
BIN=${BIN:-.venv/bin}
PORT=${CONTAINER_PORT:-50951}
START_LIMIT_S=${START_LIMIT_S:-300} # generous: the machine may be busy
read -r -a pytest_args <<<"${PYTEST_ARGS:-}"
export STORAGE_DRIVER=${STORAGE_DRIVER:-} BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-}

say() { echo "container: $*" >&2; }

find_engine() {
    if docker info >/dev/null 2>&1; then
        echo docker
    elif podman info >/dev/null 2>&1; then
        echo podman
    elif command -v buildah >/dev/null && [ "$(id -u)" = 0 ]; then
        echo buildah
    else
        echo none
    fi
}

ENGINE=${ENGINE:-$(find_engine)}
if [ "$ENGINE" = buildah ]; then
    # Neither a daemon nor name spaces: works as root inside another container.
    export STORAGE_DRIVER=${STORAGE_DRIVER:-vfs} BUILDAH_ISOLATION=${BUILDAH_ISOLATION:-chroot}
fi

build() {
    say "building $IMAGE with $ENGINE"
    case $ENGINE in
        docker | podman) "$ENGINE" build "${build_args[@]}" --tag "$IMAGE" . ;;
        buildah)
            buildah inspect --type image debian:12-slim >/dev/null 2>&1 || scripts/container_base.sh
            # Only Docker's format keeps the health check.
            buildah build --format docker --layers "${build_args[@]}" --tag "$IMAGE" .
            ;;
        none) say "no container engine works here: no image is built" ;;
        *) say "ENGINE must be docker, podman, buildah or none, got $ENGINE" && return 2 ;;
    esac
}

run_tests() {
    FACETS_TARGET=127.0.0.1:$PORT "$BIN/python" -m pytest tests/integration "${pytest_args[@]}"
}

wait_until_serving() { # arguments: a command that fails once the server has ended
    local end=$((SECONDS + START_LIMIT_S))
    until "$BIN/facets" --target "127.0.0.1:$PORT" health >/dev/null 2>&1; do
        "$@" || { say "the server ended while starting"; return 1; }
        [ "$SECONDS" -lt "$end" ] || { say "the server was not serving within $START_LIMIT_S s"; return 1; }
        sleep 2
    done
}

expect_clean_stop() { # argument: exit code of the server
    [ "$1" = 0 ] || { say "after SIGTERM the server ended with code $1, expected 0"; return 1; }
    say "after SIGTERM the server ended with code 0"
}

test_with_engine() {
    local container
    container=$("$ENGINE" run --detach --read-only --tmpfs /tmp --publish "127.0.0.1:$PORT:50051" "$IMAGE")
    # shellcheck disable=SC2064 # the id is known now
    trap "'$ENGINE' rm --force --volumes '$container' >/dev/null" EXIT
    running() { [ "$("$ENGINE" inspect --format '{{.State.Running}}' "$container")" = true ]; }
    wait_until_serving running
    "$ENGINE" exec "$container" facets health
    run_tests
    "$ENGINE" stop --time 30 "$container" >/dev/null
    expect_clean_stop "$("$ENGINE" inspect --format '{{.State.ExitCode}}' "$container")"
}

image_setting() { # argument: Go template of a part of the image's settings
    buildah inspect --type image --format "{{$1}}" "$IMAGE"
}

# Starts a command in the image's root file system, with the image's user, folder and environment.
in_root() { # arguments: root folder, command
    local root=$1 user environment
    shift
    user=$(image_setting .Docker.Config.User)
    mapfile -t environment < <(buildah inspect --type image \
        --format '{{range .Docker.Config.Env}}{{println .}}{{end}}' "$IMAGE" | sed '/^$/d')
    # shellcheck disable=SC2016 # for the inner shell
    exec chroot --userspec="$user:$user" "$root" /usr/bin/env -i "${environment[@]}" \
        sh -c 'cd "$0" && exec "$@"' "$(image_setting .Docker.Config.WorkingDir)" "$@"
}

test_with_buildah() {
    local container root server code=0
    container=$(buildah from "$IMAGE")
    root=$(buildah mount "$container")
    local entrypoint
    mapfile -t entrypoint < <(buildah inspect --type image \
        --format '{{range .Docker.Config.Entrypoint}}{{println .}}{{end}}' "$IMAGE" | sed '/^$/d')
    # Python and PyTorch need these; an engine would provide them.
    [ -e "$root/dev/urandom" ] || mknod -m 666 "$root/dev/urandom" c 1 9
    [ -e "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3
    mount --rbind /proc "$root/proc"
    (in_root "$root" "${entrypoint[@]}" --port "$PORT") &
    server=$!
    # shellcheck disable=SC2064 # the ids are known now
    trap "kill -KILL $server 2>/dev/null || true; umount --lazy '$root/proc'; buildah rm '$container' >/dev/null" EXIT
    wait_until_serving kill -0 "$server"
    say "health check of the image: $(buildah inspect --type image --format '{{.Docker.Config.Healthcheck.Test}}' "$IMAGE")"
    (in_root "$root" env "FACETS_TARGET=127.0.0.1:$PORT" facets health)
    run_tests
    kill -TERM "$server"
    wait "$server" || code=$?
    expect_clean_stop "$code"
}

# What the image does, without the image: its command, and its environment apart from paths.
test_process() {
    local data server code=0
    data=$(mktemp -d)
    env -i PATH="$PWD/$BIN:/usr/bin:/bin" HOME="$data" PYTHONUNBUFFERED=1 FACETS_SERVER_DATA_DIR="$data" \
        facets-server --port "$PORT" &
    server=$!
    # shellcheck disable=SC2064 # the ids are known now
    trap "kill -KILL $server 2>/dev/null || true; rm -rf '$data'" EXIT
    wait_until_serving kill -0 "$server"
    run_tests
    kill -TERM "$server"
    wait "$server" || code=$?
    expect_clean_stop "$code"
}

case ${1:-} in
    build) build ;;
    test)
        build
        case $ENGINE in
            docker | podman) test_with_engine ;;
            buildah) test_with_buildah ;;
            none) test_process ;;
        esac
        ;;
    *) say "expected build or test, got ${1:-nothing}" && exit 2 ;;
esac
