"""Renders chat templates as transformers does, to compare the gateway's prompts with.

usage: judge.py FOLDER

Reads templates from FOLDER/*.jinja, and from standard input one JSON object per line: `template`, the name of a file, and
`form`, the gateway's form of messages for it. Prints for each a line with the prompts of all conversations of
conversations.jsonl; null where the template refuses one. Messages are converted here as the gateway's documentation says.
"""
import copy
import datetime
import json
import pathlib
import sys

from transformers.utils import chat_template_utils as library

HERE = pathlib.Path(__file__).parent
OPTIONS = ("name", "messages", "tools", "documents", "add_generation_prompt", "continue_final_message")


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2026, 3, 5, 14, 7, 9)


library.datetime = FixedClock


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


def prompt_of(template, given, form):
    conversation = copy.deepcopy(given)
    variables = {name: value for name, value in conversation.items() if name not in OPTIONS}
    try:
        prompts, _ = library.render_jinja_template(
            [[message_of(message, form) for message in conversation["messages"]]],
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
    print(json.dumps({"template": task["template"], "prompts": prompts}))
