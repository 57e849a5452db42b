/** Errors of requests that modules affect. */
import { defineErrors } from '#kernel'

export const wasmErrors = defineErrors('wasm', {
  payload_too_large: {
    kind: 'too_large',
    source: 'client',
    text: (limitBytes: number) =>
      `a middleware module needs the request body, which is larger than its limit of ${limitBytes} bytes`,
  },
  prompt_refused: {
    kind: 'bad_request',
    source: 'client',
    text: (reason: string) => reason,
  },
  wasm_module_failed: {
    kind: 'internal',
    source: 'gateway',
    text: () => 'a required middleware module failed',
  },
  invalid_wasm_config: {
    kind: 'internal',
    source: 'gateway',
    text: (path: string, problem: string) => `plugins.wasm.${path} ${problem}`,
  },
})
