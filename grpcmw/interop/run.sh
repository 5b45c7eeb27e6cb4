#!/usr/bin/env bash
# Lets the client and the server of grpcmw talk with @grpc/grpc-js, which shares no code
# with grpc-go. It needs Node.js and npm, which it installs where apt-get can, and the npm
# registry. Everything else is in a temporary folder that is removed at the end, also after
# a failure, and on 127.0.0.1.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v npm >/dev/null 2>&1; then
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nodejs npm
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
npm install --prefix "$dir" --cache "$dir/cache" --no-save --no-audit --no-fund --loglevel=error @grpc/grpc-js@1.14.7
NODE_PATH="$dir/node_modules" go run ./grpcmw/interop
