package main

import weir "weir-gateway/wasm-sdk/go"

//go:wasmexport on_response
func onResponse() int32 { return weir.HandleResponse(handleResponse) }

// handleResponse reports failures of engines as overload, which clients retry. It does not see streams.
func handleResponse(_ *weir.Request, response *weir.Response) (*weir.Action, error) {
	if response.Status != 500 {
		return weir.Pass(), nil
	}
	return weir.Modify().WithStatus(503).SetHeader("retry-after", "1"), nil
}
