#!/usr/bin/env bash
# Measures a GPU where there are JAX, NumPy, Numba, h5py, absl-py, protobuf and rich, but no TensorFlow and no index:
#
#     bash benchmarks/gpu.sh wheels    where there is an index: puts the wheels that such a machine lacks into .whl/
#     bash benchmarks/gpu.sh [FLAG ...] on that machine: installs them beside its packages, and writes $OUT/gpu.json
#
# It takes about five minutes. A step that fails is named, and the others go on.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."

WHEELS="google-crc32c==1.9.0 mctx==0.0.71 pgx==2.6.0 svgwrite==1.4.3"

if [ "${1:-}" = wheels ]; then
    exec python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version=3.12 --implementation=cp \
        --platform=manylinux_2_28_x86_64 --platform=manylinux_2_17_x86_64 --platform=manylinux2014_x86_64 \
        --dest=.whl $WHEELS
fi

OUT="${OUT:-.}"
SITE="$(mktemp -d)"
trap 'rm -rf "$SITE"' EXIT
export PYTHONPATH="$SITE/packages:$PWD" PYTHONUNBUFFERED=1
export JAX_COMPILATION_CACHE_DIR="$SITE/jax" NUMBA_CACHE_DIR="$SITE/numba" # the steps share what they compile
python3 -m pip install --quiet --no-index --no-deps --no-compile --target="$SITE/packages" .whl/*.whl ||
    echo "some wheels are missing: what needs them is not measured"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader || true
date --utc
python3 bin/benchmark.py --gpu --seconds=5 --json="$OUT/gpu.json" "$@" 2>&1 | tee "$OUT/gpu.log"
