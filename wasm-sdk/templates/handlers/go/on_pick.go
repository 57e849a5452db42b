package main

import weir "weir-gateway/wasm-sdk/go"

//go:wasmexport on_pick
func onPick() int32 { return weir.HandlePick(handlePick) }

// handlePick picks the worker with the fewest requests in the zone of the setting zone.
func handlePick(_ *weir.Request, pick *weir.Pick) (int, error) {
	zone := weir.Config("zone", "local")
	best := -1
	for index, one := range pick.Candidates {
		if one.Labels["zone"] == zone && (best < 0 || one.InFlight < pick.Candidates[best].InFlight) {
			best = index
		}
	}
	return best, nil
}
