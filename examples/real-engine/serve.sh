#!/usr/bin/env bash
# Runs the engine on port 9100 until it is stopped.
set -euo pipefail
cd "$(dirname "$0")"

model=$(find .venv -name '*.gguf' -print -quit 2>/dev/null || true)
[ -n "$model" ] || { echo "no model here: run setup.sh first" >&2; exit 1; }
exec .venv/bin/python -m llama_cpp.server --model "$model" --model_alias smollm2 --chat_format chatml \
  --host 127.0.0.1 --port "${ENGINE_PORT:-9100}" --n_ctx 2048
