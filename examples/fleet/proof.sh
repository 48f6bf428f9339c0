#!/bin/sh
# The proof: one line of figures for each run, about twelve minutes in all. First argument: only runs whose
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
# Other units: what differs from call to call, against one limit and against two that are equally tight.
for cost in 200 50..350; do
    run --replicas 8 --limit "20000 tokens/1s" --cost tokens=$cost --tasks 50 --seconds 10
    run --replicas 8 --limit 100/1s --limit "20000 tokens/1s" --cost tokens=$cost --tasks 50 --seconds 10
done
for kind in fixed counter bucket; do
    run --replicas 8 --limit 100/1s --limit "20000 tokens/1s" --cost tokens=50..350 --tasks 50 --seconds 10 \
        --upstream-kind $kind
done
# Estimates that are off, and settled when the answer tells.
for off in 1.5 2 4; do
    run --replicas 8 --limit 100/1s --limit "20000 tokens/1s" --cost tokens=50..350 --estimate-off $off \
        --tasks 50 --seconds 10
done
# One caller who looks at the screen, in the same replica as many that can wait, and in one of its own.
run --replicas 8 --limit 100/1s --priority-mix high=1,low=50 --think 200ms --seconds 10
run --replicas 8 --limit 100/1s --priority-mix low=50 --priority-mix 0:high=1 --think 200ms --seconds 10
# Calls in flight: 20 places, calls that take 50 ms.
for replicas in 8 1; do
    run --replicas $replicas --limit 1000/1s --in-flight 20 --call-time 50ms --tasks 20 --seconds 10
done
