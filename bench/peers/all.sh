#!/usr/bin/env bash
# Measures the tables of bench/RESULTS.md: attention alone, then whole encoders and their peers, about an hour on an otherwise
# idle machine.   PYTHON=VENV/bin/python bench/peers/all.sh [OUTPUT]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python="${PYTHON:-python3}"
output="${1:-bench/results}"

"$python" bench/peers/attention.py --rounds 1 --output "$output"
# The longest inputs come last, so that they are left out when time runs out.
"$python" bench/peers/compare.py --lengths 512,1024,2048,4096,8192 --types fp32,bf16,int8 --rounds 1 --repeats 1 \
  --peers flex,flex:bf16,bert,bert:bf16,modernbert,modernbert:bf16@4096,lfm2@4096,onnxruntime@4096,onnxruntime:int8@4096,openvino,openvino:int8 \
  --budget "${BUDGET:-3600}" --output "$output"
"$python" bench/peers/compare.py --mode train --lengths 2048,4096 --types fp32,bf16 --rounds 1 --repeats 1 \
  --peers bert,modernbert,bert:bf16 --name training --output "$output"
build/cpu/etc benchmark --config bench/peers/base.json --lengths 512,4096 --residual off --tokens-per-global 18 \
  --compute fp32,bf16 --repeats 1 --threads 1 --profile >"$output/profile.txt"
"$python" bench/tables.py  # the documents' tables, from bench/results
