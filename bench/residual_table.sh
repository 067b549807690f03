#!/usr/bin/env bash
# Effect of residual attention scores on learning: the provided configurations of generated WikiHop records, one hop and
# two, with plain attention, running sum and running mean, and without global attention. All runs of a table use the same
# data and configuration; only the seed of the weights and of the order of examples differs. One row per run: best accuracy
# on held-out records, and the first evaluation that reached 90 %. One thread per run; the figures do not depend on it.
#   bench/residual_table.sh [SEEDS [HOPS]]     default: 3 seeds, 1 hop
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
etc=build/cpu/etc
seeds=${1:-3} hops=${2:-1}
case $hops in
  1) config=wikihop_tiny.json sample=(--records 8000) ;;
  2) config=wikihop_two_hops.json sample=(--records 16000 --hops 2) ;;
  *) echo "residual_table.sh: hops: expected 1 or 2, got $hops" >&2; exit 2 ;;
esac
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

{
  $etc sample --task wikihop --seed 1 "${sample[@]}" --output "$work/sample"
  for split in train dev; do
    $etc prepare --task wikihop --split $split --input "$work/sample/$split.json" --vocab "$work/sample/vocab.txt" \
      --splitter icu --output "$work/$split.h5"
  done
} >/dev/null 2>"$work/err" || { cat "$work/err" >&2; exit 1; }

row() {  # NAME SEED OPTION…
  local name=$1 seed=$2
  shift 2
  rm -rf "$work/run"
  $etc train --config tasks/configs/$config --data "$work/train.h5" --eval-data "$work/dev.h5" \
    --output "$work/run" --seed "$seed" --threads 1 "$@" >/dev/null 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
  grep '"kind":"eval"' "$work/run/metrics.jsonl" |
    sed -E 's/.*"step":([0-9]+).*"accuracy":([0-9.]+).*/\1 \2/' |
    awk -v name="$name" -v seed="$seed" '
      $2 > best { best = $2 }
      $2 >= 0.9 && !first { first = $1 }
      END { printf "| %s | %d | %.3f | %s |\n", name, seed, best, first ? first : "never" }'
}

echo '| residual scores | seed | best accuracy | steps to 90 % |'
echo '|---|---|---|---|'
for seed in $(seq "$seeds"); do
  row off "$seed" --use-residual-attention false
  row sum "$seed" --use-residual-attention true --use-running-mean false
  row mean "$seed" --use-residual-attention true --use-running-mean true
  row 'as configured, no global attention' "$seed" --global-attention false
done
