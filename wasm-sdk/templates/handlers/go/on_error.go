package main

import weir "weir-gateway/wasm-sdk/go"

//go:wasmexport on_error
func onError() int32 { return weir.HandleError(handleError) }

// handleError adds the error code and a contact to errors of the gateway and of engines.
func handleError(_ *weir.Request, _ *weir.Response, info *weir.ErrorInfo) (*weir.Action, error) {
	support := weir.Config("support", "none")
	return weir.Modify().SetHeader("x-error-code", info.Code).SetHeader("x-support", support), nil
}
