#!/usr/bin/env bash
# Speed and memory of `etc prepare` as a user sees it (process start, writing and checks included), with one and with two
# threads, compared with simdjson alone on the same file. All run in alternation, medians of three; simdjson by its CPU time. `./run bench prepare` calls this.
#
#   bench/prepare.sh                             4,000 generated records of about 1,750 long tokens (17 MB)
#   bench/prepare.sh RECORDS                     as many of them: 40000 are 170 MB, half of WikiHop's training file
#   bench/prepare.sh FILE.json VOCAB [SPLITTER]  other records
#   TASK=hotpotqa bench/prepare.sh …             records of another task
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=build/cpu
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

task="${TASK:-wikihop}"
settings=() size=(--long-tokens 1750)
if [ $# -ge 2 ]; then
  input="$1" vocab="$2"
  [ "$task" != wikihop ] || settings=(--splitter "${3:-icu}")
else
  case "$task" in
    wikihop) choices=(--candidates 20) settings=(--splitter icu) ;;
    hotpotqa) choices=(--subjects 10) ;;
    nq) choices=(--candidates 10) ;;
    openkp) choices=(--topics 10) ;;
    pretrain) choices=(--sentences 60) size=() ;;
    *) echo "bench: no generated records of task '$task' here: give a file and a vocabulary" >&2; exit 2 ;;
  esac
  "$build/etc" sample --task "$task" --records "${1:-4000}" --seed 1 "${choices[@]}" "${size[@]}" \
    --output "$work/sample" 2>/dev/null
  input=$(echo "$work"/sample/train.*) vocab="$work/sample/vocab.txt"
fi
bytes=$(stat -c %s "$input")
usage=()  # a command that records CPU seconds and peak RSS of its child
[ ! -x /usr/bin/time ] || usage=(/usr/bin/time -o "$work/usage" -f "%U %S %M")

prepare() {  # prepare THREADS: adds a line "milliseconds user-seconds system-seconds kilobytes"
  local begin end
  begin=$(date +%s%N)
  "${usage[@]}" "$build/etc" prepare --task "$task" --split train --input "$input" --vocab "$vocab" \
    "${settings[@]}" --threads "$1" --max-rejects 1000000 --output "$work/out.h5" >"$work/summary" 2>/dev/null
  end=$(date +%s%N)
  echo "$(((end - begin) / 1000000)) $([ ! -e "$work/usage" ] || tail -n 1 "$work/usage")" >>"$work/runs.$1"
}

parse_alone() { [ "$task" = pretrain ] || "$build/bench_json" "$input" 1; }  # plain text has no JSON to parse

parse_alone >/dev/null  # warms up
for turn in 1 2 3; do
  parse_alone | sed "s/ (.*), /, /" >>"$work/json"
  prepare 1
  prepare 2
done

records=$(sed -n 's/^source records: //p' "$work/summary")
echo "$records records, $bytes bytes"
for name in "simdjson alone" "cut into records" "cut and parsed"; do
  sed -n "s/^$name *//p" "$work/json" | sort -n | sed -n "2s/^/$(printf '%-27s' "$name, 1 thread")/p"
done
for threads in 1 2; do
  sort -n "$work/runs.$threads" | sed -n 2p | awk -v t="$threads" -v b="$bytes" -v r="$records" \
    -v all="$(cut -d' ' -f1 "$work/runs.$threads" | xargs)" '{
      printf "etc prepare, %d thread%s   ", t, t == 1 ? " " : "s"
      printf "%.1f MB/s, %.0f records/s (runs of %s ms)", b / $1 / 1000, r * 1000 / $1, all
      if ($4 != "") printf "; %.1f MB per processor second, peak %.0f MB", b / ($2 + $3) / 1e6, $4 * 1024 / 1e6
      print "" }'
done
