# Reports the steps of a client as lines of JSON. A step is a function; it works if it ends with 0.

step() { # name function
    local out
    if out=$("$2" 2>&1); then
        printf '{"step": "%s", "ok": true, "detail": ""}\n' "$1"
    else
        printf '%s' "$out" | python3 -c 'import json, sys; print(json.dumps({"step": sys.argv[1], "ok": False, "detail": sys.stdin.read()[-2000:]}))' "$1"
    fi
}

# Runs psql, which fails with the first error.
ask() { psql -X -q -v ON_ERROR_STOP=1 "$@"; }

# The output of a command contains a text.
has() { # text command…
    local text=$1 out
    shift
    out=$("$@" 2>&1) || { printf '%s\n' "$out" "in: $*"; return 1; }
    [[ $out == *"$text"* ]] || { printf '%s\n' "no $text in the output of $*:" "$out"; return 1; }
}
