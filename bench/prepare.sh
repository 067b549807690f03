#!/usr/bin/env bash
# Speed of `etc prepare` as a user sees it (process start, writing and checks included), with one and with two threads;
# median of three runs each. `./run bench prepare` calls this after the build.
#
#   bench/prepare.sh [FILE.json VOCAB [SPLITTER]]    without arguments: generated records of about 1,750 long tokens
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/cpu
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

if [ $# -ge 2 ]; then
  input="$1" vocab="$2" splitter="${3:-icu}"
else
  "$build/etc" sample --task wikihop --records 4000 --seed 1 --candidates 20 --long-tokens 1750 \
    --output "$work/sample" 2>/dev/null
  input="$work/sample/train.json" vocab="$work/sample/vocab.txt" splitter=icu
fi
bytes=$(stat -c %s "$input")

for threads in 1 2; do
  runs=()
  for repeat in 1 2 3 4; do  # the first warms up
    begin=$(date +%s%N)
    "$build/etc" prepare --task wikihop --split train --input "$input" --vocab "$vocab" --splitter "$splitter" \
      --threads "$threads" --max-rejects 1000000 --output "$work/out.h5" >"$work/summary" 2>/dev/null
    end=$(date +%s%N)
    [ "$repeat" = 1 ] || runs+=($(((end - begin) / 1000000)))
  done
  records=$(sed -n 's/^source records: //p' "$work/summary")
  median=$(printf '%s\n' "${runs[@]}" | sort -n | sed -n 2p)
  awk -v t="$threads" -v ms="$median" -v b="$bytes" -v r="$records" -v all="${runs[*]}" 'BEGIN {
    printf "etc prepare, %d thread%s   %7.1f MB/s, %.0f records/s (runs of %s ms)\n",
      t, t == 1 ? " " : "s", b / ms / 1000, r * 1000 / ms, all }'
done
