/** Version of the interface, as in `wasm-sdk/abi.ts`. */
export const ABI_VERSION: i32 = 1
