#!/usr/bin/env bash
# Chat template of DeepSeek R1 Distill Llama 8B (as in llama_cpp_python 0.3.36), rendered by transformers 5.24.0: tool calls of
# an assistant message are in the prompt only if its content is null. With content "" or [], which OpenAI's API allows and to
# which vLLM 0.33 changes null (vllm/renderers/hf.py and its parser of messages), the call is dropped without an error, and the
# prompt shows a result without its call. Seen:
#   null: call in the prompt, "": no call in the prompt
# Exits with 1 if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/python"
"$folder/python/bin/pip" install --quiet transformers==5.24.0 jinja2==3.1.6
"$folder/python/bin/python" - 2>/dev/null <<'PYTHON'
import io, json, sys, tarfile, urllib.request
from transformers.utils.chat_template_utils import render_jinja_template

request = urllib.request.Request(
    "https://pypi.org/simple/llama-cpp-python/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
)
files = json.load(urllib.request.urlopen(request))["files"]
url = next(file["url"] for file in files if file["filename"] == "llama_cpp_python-0.3.36.tar.gz")
with tarfile.open(fileobj=io.BytesIO(urllib.request.urlopen(url).read())) as packed:
    name = next(name for name in packed.getnames() if name.endswith("deepseek-ai-DeepSeek-R1-Distill-Llama-8B.jinja"))
    template = packed.extractfile(name).read().decode()


def shows_call(content):
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}
    messages = [
        {"role": "user", "content": "Weather in Paris?"},
        {"role": "assistant", "content": content, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "18"},
    ]
    prompts, _ = render_jinja_template([messages], chat_template=template, bos_token="<s>", add_generation_prompt=True)
    return "get_weather" in prompts[0] and "18" in prompts[0]


seen = (shows_call(None), shows_call(""))
print("null:", "call" if seen[0] else "no call", "in the prompt, \"\":", "call" if seen[1] else "no call", "in the prompt")
sys.exit(seen != (True, False))
PYTHON
