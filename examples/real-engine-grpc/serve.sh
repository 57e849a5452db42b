#!/usr/bin/env bash
# Runs the engine on port 9200 until it is stopped.
set -euo pipefail
cd "$(dirname "$0")"

[ -f .venv/model/config.json ] || { echo "no model here: run setup.sh first" >&2; exit 1; }
# Three times as fast where it is there (Debian's libopenblas0-pthread).
blas=$(find /usr/lib -name 'libopenblas.so.0' -path '*pthread*' -print -quit 2>/dev/null || true)
exec env ${blas:+LD_PRELOAD="$blas"} HF_HUB_OFFLINE=1 MLX_DISABLE_COMPILE=1 .venv/bin/python -m smg_grpc_servicer.mlx.server \
  --model "$PWD/.venv/model" --host 127.0.0.1 --port "${ENGINE_PORT:-9200}"
