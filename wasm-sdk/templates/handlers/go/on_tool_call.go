package main

import weir "weir-gateway/wasm-sdk/go"

//go:wasmexport on_tool_call
func onToolCall() int32 { return weir.HandleToolCall(handleToolCall) }

// handleToolCall rejects calls of the tool that the setting forbidden names.
func handleToolCall(_ *weir.Request, call *weir.ToolCall) (*weir.Action, error) {
	if call.Name != weir.Config("forbidden", "delete") {
		return weir.PassCall(), nil
	}
	return weir.RejectCall("the tool " + call.Name + " may not be used here"), nil
}
