module wasm-go

go 1.24

require weir-gateway/wasm-sdk/go v0.0.0

replace weir-gateway/wasm-sdk/go => ../../wasm-sdk/go
