module wasm-go

go 1.24
