#!/usr/bin/env bash
# What `make test` leaves out (the soaks, all of the live Airflow, the slow TPC-H and examples), within a time, and one
# line in docs/nightly.md of what came of it. Arguments go to pytest.
#   PGTRICKLE_SOAK   random cases of the long search (10000)
#   NIGHTLY_HOURS    after so many hours it is stopped, and recorded as such (8)
#   MUTANTS_MINUTES  how long mutants are tried afterwards; 0 for not at all (60)
set -uo pipefail
cd "$(dirname "$0")/.."

export PGTRICKLE_SOAK=${PGTRICKLE_SOAK:-10000}
hours=${NIGHTLY_HOURS:-8}
record=${NIGHTLY_RECORD:-docs/nightly.md}
python=.venv/bin/python
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Interrupted, pytest still ends its servers and says what it did.
timeout --signal=INT "${hours}h" "$python" -m pytest -m slow --timeout=0 "$@" 2>&1 | tee "$log"
code=${PIPESTATUS[0]}

summary=$(sed -n 's/^=* *\(.*[0-9].* in [0-9].*s\b[^=]*\) *=*$/\1/p' "$log" | tail -n 1 | sed 's/ *$//')
case $code in
    0) result="passed" ;;
    124) result="stopped after $hours h" ;;
    *) result="**failed**" ;;
esac
mutants=""
if ((${MUTANTS_MINUTES:-60})); then
    mutants="; $(.ci/mutants.sh | tee /dev/stderr | tail -n 1)"
fi
commit=$(git rev-parse --short HEAD 2>/dev/null || echo "no commit")
git diff --quiet HEAD 2>/dev/null || commit="$commit and changes"
printf '| %s | %s | %s | %s: %s |\n' \
    "$(date -u '+%Y-%m-%d %H:%M')" "$commit" "$PGTRICKLE_SOAK" "$result" "${summary:-no summary}$mutants" >> "$record"
exit "$code"
