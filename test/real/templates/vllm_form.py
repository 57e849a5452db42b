"""Messages as vLLM gives them to a chat template.

Which form a template gets is decided by functions of vLLM's own source file, `vllm_hf.py` of setup.sh; vLLM itself is not
installed, since it needs several gigabytes. What vLLM does before, in the package that parses messages, is written here.
"""
import __future__
import ast
import copy
import functools
import json
import pathlib
import re
from collections import deque

import jinja2
from transformers.utils import chat_template_utils

NAMES = re.compile(r"_is_(var|attr)|_attr_dotted_name|_iter_nodes_assign|_detect_dev|_convert_dev|_consolidate_sys")


def functions_of(source):
    found = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and NAMES.match(node.name)
    ]
    module = {"jinja2": jinja2, "deque": deque, "re": re, "lru_cache": functools.lru_cache, "ConversationMessage": dict}
    flags = __future__.annotations.compiler_flag
    exec(compile(ast.Module(found, []), "vllm_hf.py", "exec", flags=flags), module)
    return module


class VllmForm:
    def __init__(self, folder):
        self.functions = functions_of((pathlib.Path(folder) / "vllm_hf.py").read_text())

    @functools.cache
    def has_parts(self, template):
        tree = chat_template_utils._compile_jinja_template(template).environment.parse(template)
        return next(iter(self.functions["_iter_nodes_assign_content_item"](tree)), None) is not None

    def messages(self, template, given):
        messages = [self.message(template, message) for message in given]
        if any(message["role"] == "developer" for message in messages):
            if not self.functions["_detect_developer_role_support"](template):
                messages = self.functions["_convert_developer_to_system"](messages)
                messages = self.functions["_consolidate_system_messages"](messages)
        # apply_chat_template omits members that are null.
        return [{name: value for name, value in message.items() if value is not None} for message in messages]

    def message(self, template, given):
        content = given.get("content")
        texts = [content] if isinstance(content, str) else [part["text"] for part in content or []]
        is_parts = self.has_parts(template) and given["role"] != "tool"
        message = {
            "role": given["role"],
            "content": [{"type": "text", "text": text} for text in texts] if is_parts else "\n".join(texts),
            "name": given.get("name"),
        }
        if given["role"] == "assistant":
            message["reasoning"] = message["reasoning_content"] = given.get("reasoning_content")
            message["tool_calls"] = [call_of(call) for call in given.get("tool_calls", [])] or None
        elif given["role"] == "tool":
            message["tool_call_id"] = given.get("tool_call_id")
        return message


def call_of(given):
    call = copy.deepcopy(given)
    arguments = json.loads(call["function"].get("arguments") or "{}")
    call["function"]["arguments"] = arguments if isinstance(arguments, dict) else {}
    return call
