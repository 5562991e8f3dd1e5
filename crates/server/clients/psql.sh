#!/usr/bin/env bash
source "$(dirname "$0")/common/steps.sh"

connected() { has "$PGDATABASE" ask -c '\conninfo'; }
# Each of the commands is tried, so that all failures are seen.
each() {
    local failed=0 command
    for command in "$@"; do
        ask -c "$command" >/dev/null 2>"$ERRORS" || { printf '%s: ' "$command"; cat "$ERRORS"; failed=1; }
    done
    return $failed
}
listed() {
    has 'sample' ask -c '\dt' && has 'named' ask -c '\dv' && has 'total' ask -c '\dm' && has 'public' ask -c '\dn' &&
        has "$PGDATABASE" ask -c '\l' && has "$PGUSER" ask -c '\du' && has 'sample_day' ask -c '\di' &&
        each '\d' '\d+' '\df' '\dT' '\dp' '\ds' '\dx' '\db' '\dy' '\dconfig' '\dL' '\do' '\dC' '\dD' '\dO'
}
reflected() {
    has 'not null' ask -c '\d sample' && has 'sample_pkey' ask -c '\d sample' && has 'SELECT' ask -c '\d+ named' &&
        each '\d place' '\d total' '\d+ sample' '\d sample_day' '\sv named' '\d pg_class'
}
read_all() {
    has '12.34|Grüße|\x00ff|2026-11-28|12:34:56.789|2026-11-28 12:34:56.789|2026-11-28 12:34:56.789+00|{1,2,3}' \
        ask -At -c 'SELECT * FROM sample ORDER BY id' &&
        has '7' ask -At -v n=7 <<<'SELECT :n;' &&
        has 'bigint' ask -At <<<'SELECT id FROM sample \gdesc'
}
written() {
    ask <<'SQL' && has '2|kept' ask -At -c 'SELECT * FROM place ORDER BY id'
BEGIN;
INSERT INTO place VALUES (1, 'gone');
ROLLBACK;
BEGIN;
INSERT INTO place VALUES (2, 'kept');
SAVEPOINT a;
INSERT INTO place VALUES (3, 'gone');
ROLLBACK TO a;
COMMIT;
SELECT 'INSERT INTO place VALUES (4, ''generated'')' \gexec
DELETE FROM place WHERE id = 4;
SQL
}
copied() {
    seq -f '%.0f,copied' 100 1099 | ask -c "\\copy place FROM STDIN (FORMAT csv)" &&
        has '1000' ask -At -c 'SELECT COUNT(*) FROM place WHERE id >= 100' &&
        has '1099,copied' ask -c '\copy (SELECT * FROM place ORDER BY id) TO STDOUT (FORMAT csv)'
}
streamed() {
    has '1099' ask -At -v FETCH_COUNT=100 -c 'SELECT id FROM place ORDER BY id' || return
    # A subscription has no end: the time of its statement ends it.
    local out
    out=$(PGOPTIONS='-c statement_timeout=2s' timeout 20 psql -X -At -c 'COPY (SUBSCRIBE total) TO STDOUT' 2>&1)
    [[ $out == *57014* || $out == *timeout* || $out == *cancel* ]] && [[ $out == *1001* ]] || { echo "$out"; return 1; }
}
refused() {
    local out
    out=$(psql -X -v VERBOSITY=verbose -c 'SELECT nothing FROM sample' 2>&1)
    [[ $out == *42703* && $out == *'^'* ]] || { echo "$out"; return 1; }
}

ERRORS=$(mktemp)
trap 'rm -f "$ERRORS"' EXIT
step connect connected
step list listed
step reflect reflected
step read read_all
step write written
step copy copied
step stream streamed
step error refused
