#!/usr/bin/env bash
# Runs all measurements; `./run bench` calls this after the build. With names it runs only these: ./run bench attention.
# ./run bench --output DIR [NAME…] also writes the output of each, with the kind of machine, to DIR/NAME.txt.
# PYTHON names the Python interpreter that has the packages of wordpiece and prepare_python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/cpu
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

attention() { "$build/bench_attention"; }
analysis() { "$build/bench_analysis"; }
batch() { "$build/bench_batch"; }
patterns() { "$build/bench_patterns"; }
scores() { "$build/bench_scores"; }
matmul() { "$build/bench_matmul"; }
loader() {
  "$build/bench_loader"
  "$build/bench_loader" 10000
}
checkpoint() { "$build/bench_checkpoint"; }
text() {  # generated records as text, with their vocabulary
  "$build/etc" sample --task wikihop --records 2000 --seed 1 --hops 1 --overwrite --output "$work/sample" 2>/dev/null
  "$build/bench_text" --vocab "$work/sample/vocab.txt" --input "$work/sample/train.json" --repeat 5
}
wordpiece() {  # compared with the Python package `tokenizers`; skipped without it
  "$build/etc" sample --task wikihop --records 2000 --seed 1 --hops 1 --overwrite --output "$work/sample" 2>/dev/null
  "${PYTHON:-python3}" bench/wordpiece.py --vocab "$work/sample/vocab.txt" --input "$work/sample/train.json"
}
prepare() { bench/prepare.sh; }
prepare_python() {  # generated records, compared with a preparation in Python; skipped without its packages
  local task input long
  for task in "hotpotqa --records 2000 --subjects 10" "nq --records 600 --candidates 10" \
    "openkp --records 600 --topics 10" "squad --records 40000" "glue --records 100000"; do
    long="--long-tokens 1750"
    case "$task" in squad* | glue*) long="" ;; esac  # their texts are short
    # shellcheck disable=SC2086  # $task is a task and its options
    "$build/etc" sample --task $task --seed 1 $long --output "$work/${task%% *}" 2>/dev/null
    input=$(echo "$work/${task%% *}"/train.*)
    "${PYTHON:-python3}" bench/prepare_python --task "${task%% *}" --input "$input" \
      --vocab "$work/${task%% *}/vocab.txt"
  done
  "$build/etc" sample --task pretrain --records 500 --sentences 40 --seed 1 --output "$work/pretrain" 2>/dev/null
  "${PYTHON:-python3}" bench/prepare_python --task pretrain --input "$work/pretrain/train.txt" \
    --vocab "$work/pretrain/vocab.txt"
}

names=(attention analysis patterns scores matmul batch text wordpiece prepare prepare_python loader checkpoint)

# The kind of machine and its load, without which figures cannot be interpreted.
machine() {
  local model widest=AVX2 flag
  model="$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
  for flag in avx512f:AVX-512 amx_tile:AMX; do grep -qw "${flag%:*}" /proc/cpuinfo && widest="${flag#*:}"; done
  echo "machine: $model, $widest, $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg)"
}

output=
if [ "${1:-}" = --output ]; then
  output="${2:?bench: --output needs a folder}"
  mkdir -p "$output"
  shift 2
fi
[ $# -gt 0 ] || set -- "${names[@]}"
for name in "$@"; do
  [[ " ${names[*]} " == *" $name "* ]] || { echo "bench: no measurement '$name'; there are ${names[*]}" >&2; exit 2; }
done
for name in "$@"; do
  printf '\n== %s\n' "$name"
  if [ -n "$output" ]; then
    { machine; echo "command: ./run bench $name"; "$name"; } | tee "$output/$name.txt.partial"
    mv "$output/$name.txt.partial" "$output/$name.txt"
  else
    "$name"
  fi
done
