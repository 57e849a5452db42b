"""Renders chat templates as transformers does, to compare the gateway's prompts with.

usage: judge.py FOLDER TIME

Templates see the clock at TIME, in ISO 8601. Reads templates from FOLDER/*.jinja, and from standard input one JSON object per line: `template`, the name of a file, and
`form`, the gateway's form of messages for it, or "vllm". Prints for each a line, a list with the prompts of all conversations of
conversations.jsonl; null where the template refuses one. Messages are converted here as the gateway's documentation says.
"""
import copy
import datetime
import json
import pathlib
import sys

from transformers.utils import chat_template_utils as library
from vllm_form import VllmForm

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime.fromisoformat(sys.argv[2])


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


library.datetime = FixedClock
vllm = VllmForm(sys.argv[1])


def content_of(message, form):
    content = message.get("content")
    parts = form["content"] == "parts" and message["role"] != "tool"
    if content is None:
        return None if form["emptyContent"] == "null" else [] if parts else ""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if parts else content
    return content if parts else "\n".join(part["text"] for part in content)


def message_of(given, form):
    message = dict(given)
    if message["role"] == "developer":
        message["role"] = form["developer"]
    if "content" in message or message["role"] == "assistant":
        message["content"] = content_of(given, form)
    if "reasoning_content" in message:
        message["reasoning"] = message["thinking"] = message["reasoning_content"]
    for call in message.get("tool_calls", []):
        if form["toolArguments"] == "value":
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    return message


def messages_of(template, given, form):
    if form == "vllm":
        return vllm.messages(template, given)
    return [message_of(message, form) for message in given]


def prompt_of(template, given, form):
    conversation = copy.deepcopy(given)
    variables = conversation.get("chat_template_kwargs", {})
    if "reasoning_effort" in conversation:
        variables["reasoning_effort"] = conversation["reasoning_effort"]
    try:
        prompts, _ = library.render_jinja_template(
            [messages_of(template, conversation["messages"], form)],
            tools=conversation.get("tools"),
            documents=conversation.get("documents"),
            chat_template=template,
            continue_final_message=conversation.get("continue_final_message", False),
            add_generation_prompt=conversation.get("add_generation_prompt", True),
            bos_token="<s>",
            eos_token="</s>",
            **variables,
        )
        return prompts[0]
    except Exception:
        return None


conversations = [json.loads(line) for line in (HERE / "conversations.jsonl").read_text().strip().split("\n")]
for line in sys.stdin:
    task = json.loads(line)
    source = (pathlib.Path(sys.argv[1]) / task["template"]).read_text()
    prompts = [prompt_of(source, conversation, task["form"]) for conversation in conversations]
    print(json.dumps(prompts))
