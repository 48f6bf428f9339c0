#!/bin/sh
# The proof: one line of figures for each run, about nine minutes in all. First argument: only runs whose
# words contain it.
set -eu
cargo build --quiet --release --example fleet
fleet=${CARGO_TARGET_DIR:-target}/release/examples/fleet

run() {
    case "fleet $*" in *"${only:-}"*) ;; *) return 0 ;; esac
    echo "fleet $*"
    "$fleet" "$@" --json 2>/dev/null | tail -1 | sed 's/"per_replica":\[[^]]*\],//; s/"windows":.*/}/; s/^/  /'
}
only=${1:-}

# Tight guard: nothing refused, nothing wasted, everybody the same.
for kind in rolling fixed; do
    for replicas in 8 3 1; do
        run --replicas $replicas --limit 100/1s --tasks 50 --seconds 10 --guard 10ms --upstream-kind $kind
    done
    run --replicas 8 --limit 1000/1s --tasks 50 --seconds 10 --guard 10ms --upstream-kind $kind
done
run --replicas 8 --limit 10/1s --tasks 50 --seconds 60 --guard 10ms
# Default guard: upstreams that estimate, a wire that jitters.
for kind in rolling fixed counter; do
    run --replicas 8 --limit 100/1s --tasks 50 --seconds 10 --upstream-kind $kind
done
run --replicas 8 --limit 100/1s --tasks 50 --seconds 10 --jitter 5..50ms
# A bucket against a bucket; two limits at once.
run --replicas 8 --limit "100/1s burst 10" --tasks 50 --seconds 10 --upstream-kind bucket
run --replicas 8 --limit 5/1s --limit 100/30s --tasks 50 --seconds 65
# Evenly spread, whether callers wait or are refused.
for policy in wait reject; do
    for replicas in 1 8; do
        run --replicas $replicas --limit 100/1s --tasks 50 --seconds 10 --policy $policy
        run --replicas $replicas --limit 1000/1s --tasks 50 --seconds 10 --policy $policy
    done
done
# Everything refused for two seconds: how fast all fall silent, told by the bell or not, and how they come back.
for bell in "" --no-bell; do
    for _ in 1 2 3 4 5; do
        run --replicas 8 --limit 100/1s --tasks 50 --seconds 10 --trip 2s@4s $bell
    done
done
# A redirect is one more request, followed or not.
for redirects in 1 0; do
    run --replicas 8 --limit 100/1s --tasks 50 --seconds 10 --redirect-every 10 --redirects $redirects
done
