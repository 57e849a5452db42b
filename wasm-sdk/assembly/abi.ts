/** Version of the interface that this library speaks; `wasm-sdk/abi.ts` is where it is defined. */
export const ABI_VERSION: i32 = 1
