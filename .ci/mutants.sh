#!/usr/bin/env bash
# Which mistakes no test notices: mutmut changes the engine in one small way at a time, and runs the tests that reach
# the change. Without arguments all of what pyproject.toml's [tool.mutmut] names; otherwise patterns of its mutants:
#   .ci/mutants.sh "airflow_provider_pgtrickle.engine.dvm.operators.*"
#   MUTANTS_MINUTES   after so many minutes it stops (60)
# It ends with the changes that survived; `.venv/bin/mutmut show NAME` shows one. A survivor is a question, not a failure.
set -uo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
minutes=${MUTANTS_MINUTES:-60}
patterns=("$@")

# mutmut would keep which test reaches what, by ids that shift when a parametrized test gets another case: a mutant
# that is noticed then seems to survive.
rm -rf mutants

# Its spinner redraws its lines: only the last state of each is of use in a log.
timeout --signal=INT --kill-after=30 "${minutes}m" "$python" -m mutmut run --max-children "$(nproc)" \
    ${patterns[@]+"${patterns[@]}"} 2>&1 | tr '\r' '\n' | tail -n 1
code=${PIPESTATUS[0]}
results=$("$python" -m mutmut results --all true) || exit 1
printf '%s\n' "$results" | sed -n 's/^ *\(.*\): survived$/survived: \1/p'
count() { printf '%s\n' "$results" | grep -c ": $1\$"; }
tried=$(($(count killed) + $(count survived) + $(count timeout)))
stopped=""
case $code in
    0) ;;
    124 | 130 | 137) stopped=", stopped after $minutes min" ;;
    *) echo "mutants: mutmut failed ($code)"; exit "$code" ;;
esac
echo "mutants: $(count survived) of $tried survived, $(count 'no tests') are in code that no unit test runs$stopped"
