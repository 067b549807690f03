#!/usr/bin/env bash
# The complete workflow on generated records: sample -> prepare -> train -> eval -> predict -> look. Everything goes to
# demo/. `./run demo` calls this after the build; to examine one step, copy its line and run it by hand.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
etc=build/cpu/etc

step() { printf '\n$ %s\n' "$*"; "$@"; }

# The folder of an earlier demo is replaced; any other folder of that name is refused.
if [ -e demo ] && [ ! -f demo/made-by-demo ]; then
  echo "demo: the folder demo is not an earlier demo's: rename it, or remove it" >&2
  exit 1
fi
rm -rf demo
mkdir demo
touch demo/made-by-demo
step $etc sample --task wikihop --records 8000 --seed 1 --hops 1 --output demo/sample
step $etc prepare --task wikihop --split train --input demo/sample/train.json --vocab demo/sample/vocab.txt \
  --splitter icu --output demo/train.h5
step $etc prepare --task wikihop --split dev --input demo/sample/dev.json --vocab demo/sample/vocab.txt \
  --splitter icu --output demo/dev.h5
step $etc train --config tasks/configs/wikihop_tiny.json --data demo/train.h5 --eval-data demo/dev.h5 --output demo/run
step $etc eval --model demo/run/best --data demo/dev.h5
step $etc predict --model demo/run/best --data demo/dev.h5 --output demo/predictions.json
# Pictures (SVG) of what the model attends to.
step $etc analyze --model demo/run/best --data demo/dev.h5 --examples 200 --output demo/analysis
step $etc predict --model demo/run/best --input demo/sample/dev.json --vocab demo/sample/vocab.txt --show 1
