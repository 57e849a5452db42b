module {{name}}

go 1.24

require weir-gateway/wasm-sdk/go v0.0.0

// A copy of the library, so that the project builds on every machine.
replace weir-gateway/wasm-sdk/go => ./weir-sdk
