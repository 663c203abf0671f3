#!/usr/bin/env bash
# Runs every libFuzzer target of the dev preset on its corpus and mutations of it: tools/fuzz.sh SECONDS [TARGET...]
# The random seed is fixed, so that a change fails by its own fault. Inputs that crash are left in build/dev/fuzz/crashes/;
# each becomes a file of tests/fuzz/corpus/TARGET/ and a named test.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:?"usage: tools/fuzz.sh SECONDS [TARGET...]"}
shift

run_target() {
  local target=$1
  mkdir -p "build/dev/fuzz/found/$target" build/dev/fuzz/crashes "tests/fuzz/corpus/$target"
  "build/dev/tests/fuzz/hearth_${target}_fuzz" -seed=1 -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="build/dev/fuzz/crashes/$target-" -print_final_stats=1 \
    "build/dev/fuzz/found/$target" "tests/fuzz/corpus/$target"
}

if [ $# = 0 ]; then
  for program in build/dev/tests/fuzz/hearth_*_fuzz; do
    target=${program##*/hearth_}
    set -- "$@" "${target%_fuzz}"
  done
fi

# Side by side, each with a log of its own.
logs=build/dev/fuzz/logs
mkdir -p "$logs"
pids=()
for target in "$@"; do
  run_target "$target" >"$logs/$target.log" 2>&1 &
  pids+=($!)
done
failed=0
for i in "${!pids[@]}"; do
  target=${*:i+1:1}
  wait "${pids[$i]}" || failed=1
  echo "fuzz: $target, $seconds s"
  tail -n 20 "$logs/$target.log"
done
exit "$failed"
