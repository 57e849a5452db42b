module weir-gateway.example/sdk

go 1.24
