// Package main requires a team of every request, and passes its name on in lower case.
package main

import (
	"strings"

	weir "weir-gateway/wasm-sdk/go"
)

//go:wasmexport describe
func describe() int32 {
	return weir.Describe(weir.Description{Headers: []string{"x-team"}, FailsClosed: true})
}

//go:wasmexport on_request
func onRequest() int32 { return weir.HandleRequest(handleRequest) }

func handleRequest(request *weir.Request) (*weir.Action, error) {
	team, _ := request.Headers.Get("x-team")
	if team = strings.ToLower(strings.TrimSpace(team)); team != "" {
		return weir.Modify().SetHeader("x-team", team), nil
	}
	return weir.Reject(400).WithText(weir.Config("message", "say which team you are")), nil
}

// main is never called: the gateway calls the exports.
func main() {}
