// Package weir is the library for gateway modules in Go.
//
// A module exports a function per attach point, which runs a handler:
//
//	//go:wasmexport describe
//	func describe() int32 {
//		return weir.Describe(weir.Description{Headers: []string{"x-team"}})
//	}
//
//	//go:wasmexport on_request
//	func onRequest() int32 { return weir.HandleRequest(handle) }
//
//	func handle(request *weir.Request) (*weir.Action, error) {
//		if _, ok := request.Headers.Get("x-team"); !ok {
//			return weir.Reject(400).WithText("the header x-team is missing"), nil
//		}
//		return weir.Pass(), nil
//	}
//
// An error that a handler returns fails the call; FailsClosed of the description defines what happens to the request.
package weir

// ABIVersion is the version of the interface that this package implements.
const ABIVersion = 1
