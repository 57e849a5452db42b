#!/usr/bin/env bash
# Installs what mcp-servers.test.ts starts: the Python SDK of the protocol in an environment of its own, and a server of the Go
# SDK. Downloads about 40 MB from PyPI and the Go module proxy into .servers of this folder.
set -euo pipefail
cd "$(dirname "$0")"
python3 -m venv .servers/python
.servers/python/bin/pip install --quiet mcp==2.3.0
go build -o .servers/go-server .
