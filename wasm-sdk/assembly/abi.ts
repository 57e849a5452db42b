/** Version of the interface, as in `wasm-sdk/abi.ts`. */
export const ABI_VERSION: i32 = 1

/** Length field in front of the head of a frame, bytes. */
export const FRAME_HEAD_BYTES: i32 = 4
