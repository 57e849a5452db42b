package main

import weir "weir-gateway/wasm-sdk/go"

//go:wasmexport on_stream_event
func onStreamEvent() int32 { return weir.HandleStreamEvent(handleStreamEvent) }

// handleStreamEvent drops events with the name of the setting drop.
func handleStreamEvent(_ *weir.Request, event *weir.Event) (*weir.StreamAction, error) {
	if event.Name != weir.Config("drop", "ping") {
		return weir.PassEvent(), nil
	}
	return weir.DropEvent(), nil
}
