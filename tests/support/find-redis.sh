#!/bin/sh
# Prints the redis-server to test with: $REDIS_SERVER, the one in PATH, or one installed now if that is possible.
set -eu
if [ -n "${REDIS_SERVER:-}" ]; then
    echo "$REDIS_SERVER"
    exit
fi
if ! command -v redis-server >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq redis-server; } >&2
fi
command -v redis-server || {
    echo "the tests need redis-server 6.2 or later: install it (apt-get install redis-server) or set REDIS_SERVER to its path" >&2
    exit 1
}
