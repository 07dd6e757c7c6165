#!/usr/bin/env bash
# Starts the server, and beside it indexes the samples and shows two searches: what `make serve` runs, which sets the
# variables. The server takes the place of this process, with its signals and its exit code.
set -euo pipefail
cd "$(dirname "$0")/.."
facets=("$BIN/facets" --target "$HOST:$PORT")

in_use() { (exec 3<>"/dev/tcp/$HOST/$1") 2>/dev/null; }

show() {
    printf '\n$ facets'
    for word; do if [[ $word = *" "* ]]; then printf ' "%s"' "$word"; else printf ' %s' "$word"; fi; done
    echo
    "${facets[@]}" "$@"
}

show_samples() {
    until "${facets[@]}" health >/dev/null 2>&1; do
        kill -0 $$ 2>/dev/null || exit # the server has ended and said why
        sleep 0.2
    done
    show index samples/wikipedia.jsonl --collection samples --create --max-wait-s 5
    show search "capital city of France" --collection samples --top-k 3
    show search "how do plants turn sunlight into food" --collection samples --top-k 3
    cat <<END

The server is up at $HOST:$PORT, its page at http://$HOST:$HTTP_PORT/. In another terminal, in this folder:

  source $BIN/activate
  export FACETS_TARGET=$HOST:$PORT
  facets search "how vaccines protect against disease" --collection samples --top-k 3
  facets search "another name for ping pong" --collection samples --where topic=sport --explain
  facets search "renew a parking permit" --collection samples
  facets explain "The striker scored in extra time."
  facets similarity "A dog is barking." "A puppy makes noise."
  facets index YOUR-FILE.jsonl --collection mine --create
  facets --help

Documents are kept in $DATA_DIR. Ctrl-C stops the server.
END
}

if in_use "$PORT"; then
    echo "serve: port $PORT cannot be used: choose another one, make serve PORT=$((PORT + 1))" >&2
    exit 1
fi
while in_use "$HTTP_PORT"; do HTTP_PORT=$((HTTP_PORT + 1)); done
export FACETS_SERVER_BACKUP_DIR=${FACETS_SERVER_BACKUP_DIR:-$DATA_DIR-backups} # for the button of the page
show_samples &
exec "$BIN/facets-server" --host "$HOST" --port "$PORT" --http-port "$HTTP_PORT" --data-dir "$DATA_DIR" \
    --log-level "$LOG_LEVEL" ${MODEL:+--model "$MODEL"}
