#!/bin/sh
# Lints the protos and checks them against the released ones, with buf, offline.
#
#     scripts/check_protos.sh              `make proto-check` runs `npm install` in proto first
#     scripts/check_protos.sh --release    records the current protos as released
set -eu
cd "$(dirname "$0")/../proto"
buf=node_modules/.bin/buf
released=released/v1.binpb
now=$(mktemp -d)
trap 'rm -rf "$now"' EXIT

"$buf" lint
"$buf" build --exclude-source-info --output "$now/protos.binpb"
if [ "${1:-}" = --release ]; then
    cp "$now/protos.binpb" "$released"
    echo "check_protos: wrote proto/$released"
    exit
fi
# Images have no folders: Google's protos are excluded by package.
"$buf" breaking "$now/protos.binpb" --against "$released" --config '{
    "version": "v2", "breaking": {"use": ["PACKAGE"], "ignore": ["google"]}}'
echo "check_protos: the protos are valid and compatible with the last release"
