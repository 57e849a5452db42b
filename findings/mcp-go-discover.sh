#!/usr/bin/env bash
# github.com/modelcontextprotocol/go-sdk 1.8.0, streamable HTTP handler (2026-11): whether a server offers protocol 2026-07-28
# depends on an option of its handler. With the default options (sessions) `server/discover` is answered without an error, with
# `resultType` and `cacheScope` as the new revision has them, but `supportedVersions` ends at 2025-11-25; with `Stateless: true`
# the same server offers 2026-07-28. A client must read the list: an answer to `server/discover` does not mean the new revision.
# Also seen: `ttlMs` is 0 in both, so a client that follows it lists the tools for every turn unless it subscribes to changes.
# Output: one line per mode. Exits with 1 if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
cleanup() {
  for pid in $(cat "$folder"/*.pid 2>/dev/null); do kill "$pid" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap cleanup EXIT
cd "$folder"
cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type input struct{}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "t"}, func(context.Context, *mcp.CallToolRequest, input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	options := &mcp.StreamableHTTPOptions{Stateless: os.Args[1] == "stateless"}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	panic(http.Serve(listener, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)))
}
GO
go mod init finding >/dev/null 2>&1
go get github.com/modelcontextprotocol/go-sdk/mcp@v1.8.0 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go build -o server .
discover() {
  ./server "$1" > "$1.port" &
  echo $! > "$1.pid"
  until [ -s "$1.port" ]; do sleep 0.1; done
  curl -s "http://127.0.0.1:$(cat "$1.port")/mcp" -H 'content-type: application/json' \
    -H 'accept: application/json, text/event-stream' -H 'mcp-protocol-version: 2026-07-28' -H 'mcp-method: server/discover' \
    -d '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}}}' |
    grep -o '"resultType":"[a-z]*"\|"ttlMs":[0-9]*\|"supportedVersions":\[[^]]*\]' | tr '\n' ' '
}
sessions=$(discover sessions)
stateless=$(discover stateless)
echo "sessions:  $sessions"
echo "stateless: $stateless"
[[ $sessions == *'"resultType":"complete"'* && $sessions != *2026-07-28* && $sessions == *2025-11-25* ]]
[[ $stateless == *2026-07-28* && $stateless == *'"ttlMs":0'* ]]
