// Package main declares what the module needs; each file on_*.go has a handler.
package main

import weir "weir-gateway/wasm-sdk/go"

//go:wasmexport describe
func describe() int32 {
	return weir.Describe(weir.Description{})
}

// main is never called: the gateway calls the exports.
func main() {}
