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
MAX_IMAGE_MB=${MAX_IMAGE_MB:-1100} # more with CUDA
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

expect_small() { # argument: bytes of the image's files
    say "the image's files have $(($1 / 1000000)) MB, at most $MAX_IMAGE_MB"
    [ "$1" -le "$((MAX_IMAGE_MB * 1000000))" ]
}

test_with_engine() {
    local container bytes
    bytes=$("$ENGINE" run --rm --user 0 --network none --entrypoint du "$IMAGE" --bytes --summarize --one-file-system /)
    expect_small "${bytes%%[!0-9]*}"
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

image_list() { # argument: name of a list in the image's settings
    buildah inspect --type image --format "{{range .Docker.Config.$1}}{{println .}}{{end}}" "$IMAGE" | sed '/^$/d'
}

# Starts a command in the image's root file system as an engine would with --read-only --tmpfs /tmp --cap-drop ALL
# --security-opt no-new-privileges: with the image's user, folder and environment, and mounts of its own.
in_root() { # arguments: root folder, folder for /data, command
    local root=$1 data=$2 environment
    shift 2
    mapfile -t environment < <(image_list Env)
    # shellcheck disable=SC2016 # for the inner shells
    exec unshare --mount --propagation private bash -euc '
        root=$1 data=$2 user=$3 folder=$4
        shift 4
        mount --bind "$root" "$root"
        mount --options remount,bind,ro "$root"
        mount --rbind /proc "$root/proc"
        mount --rbind /dev "$root/dev"
        mount --types tmpfs tmpfs "$root/tmp"
        mount --bind "$data" "$root/data"
        exec chroot "$root" /usr/bin/setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs \
            --bounding-set=-all --inh-caps=-all /usr/bin/env -i --chdir "$folder" "$@"
    ' in_root "$root" "$data" "$(image_setting .Docker.Config.User)" "$(image_setting .Docker.Config.WorkingDir)" \
        "${environment[@]}" "$@"
}

test_with_buildah() {
    local container root bytes data server entrypoint health code=0
    container=$(buildah from "$IMAGE")
    # shellcheck disable=SC2064 # the id is known now
    trap "buildah rm '$container' >/dev/null" EXIT
    root=$(buildah mount "$container")
    bytes=$(du --bytes --summarize "$root")
    expect_small "${bytes%%[!0-9]*}"
    data=$(mktemp -d)
    chown "$(stat --format %u:%g "$root/data")" "$data"
    mapfile -t entrypoint < <(image_list Entrypoint)
    mapfile -t health < <(image_list Healthcheck.Test | tail -n +2) # the first one is CMD
    (in_root "$root" "$data" "${entrypoint[@]}" --port "$PORT") &
    server=$!
    # shellcheck disable=SC2064 # the ids are known now
    trap "kill -KILL $server 2>/dev/null || true; buildah rm '$container' >/dev/null; rm -rf '$data'" EXIT
    wait_until_serving kill -0 "$server"
    say "user $(image_setting .Docker.Config.User), read-only root; health check: ${health[*]}"
    (in_root "$root" "$data" env "FACETS_TARGET=127.0.0.1:$PORT" "${health[@]}")
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
