#!/usr/bin/env bash
# Writes the files of this folder again, by PostgreSQL 15: the forms of values that the tests of src/pg/types compare with theirs.
# Needs `postgres` and `initdb` in POSTGRES_BIN, and a user who is not root.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
bin="${POSTGRES_BIN:-/usr/lib/postgresql/15/bin}"
work="$(mktemp -d)"
server=""
trap '[[ -z "$server" ]] || kill "$server"; wait; rm -rf "$work"' EXIT

"$bin/initdb" -D "$work/data" -U postgres -A trust --no-sync -E UTF8 --locale=C.UTF-8 > "$work/initdb.log"
"$bin/postgres" -D "$work/data" -c listen_addresses= -c unix_socket_directories="$work" -c fsync=off 2> "$work/log" &
server=$!
export PGHOST="$work" PGUSER=postgres PGDATABASE=postgres
until psql -qc "" 2> /dev/null; do sleep 0.2; done

psql -qAt -v ON_ERROR_STOP=1 -f "$here/values.sql" > "$work/values.tsv"
psql -qAt -v ON_ERROR_STOP=1 -f "$here/refused.sql" > "$work/refused.tsv"
psql -qAt -v ON_ERROR_STOP=1 -f "$here/copy.sql" -c "COPY (TABLE odd ORDER BY id) TO STDOUT" > "$work/copy.txt"
psql -qAt -v ON_ERROR_STOP=1 -f "$here/copy.sql" -c "COPY (TABLE odd ORDER BY id) TO STDOUT (FORMAT csv, HEADER)" > "$work/copy.csv"
psql -qAt -v ON_ERROR_STOP=1 -f "$here/copy.sql" \
    -c "COPY (TABLE odd ORDER BY id) TO STDOUT (FORMAT csv, DELIMITER ';', QUOTE '''', ESCAPE '\\', NULL 'none')" > "$work/odd.csv"
psql -qAt -v ON_ERROR_STOP=1 -f "$here/copy.sql" -c "COPY (TABLE odd ORDER BY id) TO STDOUT (FORMAT binary)" |
    od -An -v -tx1 | tr -d ' ' > "$work/copy.hex"
for file in values.tsv refused.tsv copy.txt copy.csv odd.csv copy.hex; do
    cat "$work/$file" > "${OUT:-$here}/$file"
done
