#!/bin/sh
# Lints the protos and compares them with the released ones, by buf, without a network.
#
#     scripts/check_protos.sh              after `npm install` in proto, which `make proto-check` does
#     scripts/check_protos.sh --release    writes what is there as released
set -eu
cd "$(dirname "$0")/../proto"
buf=node_modules/.bin/buf
released=released/v1.binpb
now=$(mktemp -d)
trap 'rm -rf "$now"' EXIT

"$buf" lint
"$buf" build --exclude-source-info --output "$now/protos.binpb"
# Of two images buf knows no folders: what is Google's is left out by its package's path.
"$buf" breaking "$now/protos.binpb" --against "$released" --config '{
    "version": "v2", "breaking": {"use": ["PACKAGE"], "ignore": ["google"]}}'
if [ "${1:-}" = --release ]; then
    cp "$now/protos.binpb" "$released"
    echo "check_protos: proto/$released is what is there now"
fi
echo "check_protos: the protos keep the rules, and what was released"
