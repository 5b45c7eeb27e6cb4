#!/usr/bin/env bash
# Runs the tests beside nginx, curl and Python's websockets, which it installs with apt where
# they are missing. Everything listens on free ports of 127.0.0.1, and lies in a temporary
# folder; both are given back at the end, after a failure and after Ctrl-C too.
set -euo pipefail
cd "$(dirname "$0")/../.."

missing=()
command -v nginx >/dev/null 2>&1 || [ -x /usr/sbin/nginx ] || missing+=(nginx-light)
command -v curl >/dev/null 2>&1 || missing+=(curl)
/usr/bin/python3 -c 'import websockets' >/dev/null 2>&1 || missing+=(python3-websockets)
if [ ${#missing[@]} -gt 0 ]; then
  # Nothing that is installed here is to be started as a service.
  apt-get update -qq && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

TMPDIR=$(mktemp -d)
export TMPDIR
# Whatever the tests have left behind, as they do when they are killed, was started in there.
cleanup() {
  for pid in "$TMPDIR"/*.pid; do
    [ -e "$pid" ] && kill -9 "$(cat "$pid")" 2>/dev/null
  done
  rm -rf "$TMPDIR"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

HOLDFAST_INTEROP=1 PATH="$PATH:/usr/sbin" go test -race -count 1 -timeout 5m "$@" ./httpmw/interop
