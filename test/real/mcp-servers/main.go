// A tool server of the Go SDK: over HTTP on the port of the first argument, with sessions unless the second is "stateless",
// or with "stdio" as a program.
package main

import (
	"context"
	"log"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type input struct {
	City string `json:"city"`
}

func look(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
	text := &mcp.TextContent{Text: "rain in " + in.City}
	return &mcp.CallToolResult{Content: []mcp.Content{text}}, nil, nil
}

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "go", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "look", Description: "Looks at the weather."}, look)
	if os.Args[1] == "stdio" {
		log.Fatal(server.Run(context.Background(), &mcp.StdioTransport{}))
	}
	// Only stateless handlers offer protocol 2026-07-28.
	options := &mcp.StreamableHTTPOptions{Stateless: os.Args[2] == "stateless"}
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], handler))
}
