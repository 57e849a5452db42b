module weir-gateway/wasm-sdk/go

go 1.24
