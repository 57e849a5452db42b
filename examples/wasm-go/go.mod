module weir-gateway.example/wasm-go

go 1.24

require weir-gateway.example/sdk v0.0.0

replace weir-gateway.example/sdk => ../../wasm-sdk/go
