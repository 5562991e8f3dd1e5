#!/usr/bin/env bash
source "$(dirname "$0")/common/steps.sh"

connected() { ask -c 'SELECT 1'; }
# As pgbench does without options, or else without VACUUM, so that what follows has its tables; that counts as a failure.
filled() {
    pgbench -i -s 1 -q && has '100000' ask -At -c 'SELECT COUNT(*) FROM pgbench_accounts' && return
    pgbench -i -I dtgp -s 1 -q || echo "nor without VACUUM"
    return 1
}
# pgbench ends with an error if a client was aborted, and says how many transactions failed.
run() {
    local mode
    for mode in simple extended prepared; do
        has 'number of failed transactions: 0 ' pgbench -n -M "$mode" -c 4 -j 1 "$@" || { echo "mode $mode"; return 1; }
    done
}
selected() { run -t 100 -S; }
mixed() { run -t 20; }
simple_update() { run -t 20 -N; }
# The sum of the balances is that of the history.
balanced() { [[ $(ask -At -c 'SELECT (SELECT SUM(abalance) FROM pgbench_accounts) - (SELECT SUM(delta) FROM pgbench_history)') == 0 ]]; }
written() { mixed && simple_update && balanced; }

step connect connected
step copy filled
step read selected
step write written
