// Package main requires a team of every request, and passes its trimmed name on to the worker.
package main

import (
	"strings"

	weir "weir-gateway/wasm-sdk/go"
)

//go:wasmexport describe
func describe() int32 {
	return weir.Describe(weir.Description{Headers: []string{"x-team"}})
}

//go:wasmexport on_request
func onRequest() int32 { return weir.HandleRequest(handleRequest) }

func handleRequest(request *weir.Request) (*weir.Action, error) {
	if team, ok := request.Headers.Get("x-team"); ok {
		return weir.Modify().SetHeader("x-team", strings.TrimSpace(team)), nil
	}
	message := weir.Config("message", "the header x-team is missing")
	return weir.Reject(400).WithJSON(`{"error":{"message":` + weir.Quote(message) + `}}`), nil
}

// main is never called: the gateway calls the exports.
func main() {}
