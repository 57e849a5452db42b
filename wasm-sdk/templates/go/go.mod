module {{name}}

go 1.24

require weir-gateway.example/sdk v0.0.0

// A copy of the library, so that the project builds on every machine.
replace weir-gateway.example/sdk => ./weir-sdk
