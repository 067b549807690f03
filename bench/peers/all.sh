#!/usr/bin/env bash
# The tables of bench/RESULTS.md: attention alone, then whole encoders beside their peers, within 18 minutes on an
# otherwise idle machine.   PYTHON=VENV/bin/python bench/peers/all.sh [OUTPUT]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python="${PYTHON:-python3}"
output="${1:-bench/results}"

"$python" bench/peers/attention.py --rounds 1 --output "$output"
# The longest inputs come last: they are what is left out when time runs out.
"$python" bench/peers/compare.py --lengths 4096,2048,1024,512,8192 --types fp32,bf16,int8 --repeats 1 --rounds 4 \
  --peers flex,bert,flex:bf16,bert:bf16,modernbert@4096,modernbert:bf16@4096,longt5@4096,longformer@4096,bigbird@2048 \
  --budget "${BUDGET:-900}" --output "$output"
build/cpu/etc benchmark --config bench/peers/base.json --lengths 512,4096 --residual off --tokens-per-global 18 \
  --compute fp32,bf16 --repeats 1 --threads 1 --profile >"$output/profile.txt"
"$python" bench/tables.py  # RESULTS.md and README.md, from bench/results
