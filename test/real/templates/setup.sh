#!/usr/bin/env bash
# Installs what chat-templates.test.ts compares with: transformers in a Python environment, and the chat templates that the
# source packages of llama-cpp-python and vLLM contain, with the file in which vLLM decides what messages a template gets.
# Downloads about 150 MB from PyPI into .templates of this folder.
set -euo pipefail
cd "$(dirname "$0")"
mkdir -p .templates
python3 -m venv .templates/python
.templates/python/bin/pip install --quiet transformers==5.24.0 jinja2==3.1.6
.templates/python/bin/python - <<'PYTHON'
import hashlib, io, json, pathlib, re, tarfile, urllib.request

PACKAGES = {
    "llama_cpp_python-0.3.36": ("832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e", r"models/templates/"),
    "vllm-0.33.0": ("f4c33c2503d52bb411146afa9618a4f48bed68912f617e6803ac8d76e4c74112", r"^[^/]*/(examples|vllm)/|chat/tests/templates/[^/]*$"),
}
for name, (digest, pattern) in PACKAGES.items():
    project = name.rsplit("-", 1)[0].replace("_", "-")
    request = urllib.request.Request(
        f"https://pypi.org/simple/{project}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"}
    )
    files = json.load(urllib.request.urlopen(request))["files"]
    url = next(file["url"] for file in files if file["filename"] == f"{name}.tar.gz")
    archive = urllib.request.urlopen(url).read()
    if hashlib.sha256(archive).hexdigest() != digest:
        raise SystemExit(f"{name} has another digest")
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        for member in packed:
            if member.name.endswith("/vllm/renderers/hf.py"):
                pathlib.Path(".templates/vllm_hf.py").write_bytes(packed.extractfile(member).read())
            elif member.name.endswith(".jinja") and re.search(pattern, member.name):
                target = pathlib.Path(".templates") / re.sub(r"[^\w.-]", "_", member.name)
                target.write_bytes(packed.extractfile(member).read())
PYTHON
ls .templates/*.jinja | wc -l
