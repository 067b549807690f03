#!/usr/bin/env bash
# Every measurement in one go; `./run bench` calls this after the build. With a name it runs one: ./run bench attention.
# PYTHON says which python has the packages of wordpiece and prepare_python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/cpu
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

attention() { "$build/bench_attention"; }
batch() { "$build/bench_batch"; }
scores() { "$build/bench_scores"; }
matmul() { "$build/bench_matmul"; }
loader() {
  "$build/bench_loader"
  "$build/bench_loader" 10000
}
checkpoint() { "$build/bench_checkpoint"; }
text() {  # generated records as text: the vocabulary is theirs, too
  "$build/etc" sample --task wikihop --records 2000 --seed 1 --hops 1 --overwrite --output "$work/sample" 2>/dev/null
  "$build/bench_text" --vocab "$work/sample/vocab.txt" --input "$work/sample/train.json" --repeat 5
}
wordpiece() {  # next to the Python package `tokenizers`; skipped without it
  "$build/etc" sample --task wikihop --records 2000 --seed 1 --hops 1 --overwrite --output "$work/sample" 2>/dev/null
  "${PYTHON:-python3}" bench/wordpiece.py --vocab "$work/sample/vocab.txt" --input "$work/sample/train.json"
}
prepare() { bench/prepare.sh; }
prepare_python() {  # generated records next to a preparation in Python; skipped without its packages
  local task input
  for task in "hotpotqa --records 2000 --subjects 10" "nq --records 600 --candidates 10" \
    "openkp --records 600 --topics 10"; do
    # shellcheck disable=SC2086  # a task and its options
    "$build/etc" sample --task $task --seed 1 --long-tokens 1750 --output "$work/${task%% *}" 2>/dev/null
    input=$(echo "$work/${task%% *}"/train.json*)
    "${PYTHON:-python3}" bench/prepare_python --task "${task%% *}" --input "$input" \
      --vocab "$work/${task%% *}/vocab.txt"
  done
}

if [ $# -gt 0 ]; then
  for name in "$@"; do
    declare -F "$name" >/dev/null || { echo "bench: no measurement '$name'; there are attention scores matmul batch text wordpiece prepare prepare_python loader checkpoint" >&2; exit 2; }
    "$name"
  done
else
  for name in attention scores matmul batch text wordpiece prepare prepare_python loader checkpoint; do
    printf '\n== %s\n' "$name"
    "$name"
  done
fi
