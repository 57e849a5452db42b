/** Errors of the wasm plugin. The reason of a rejected registration is part of its response. */
import { defineErrors } from '#kernel'

export const wasmErrors = defineErrors('wasm', {
  payload_too_large: {
    kind: 'too_large',
    source: 'client',
    text: (limitBytes: number) =>
      `a middleware module needs the request body, which is larger than its limit of ${limitBytes} bytes`,
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

/** A module or a change of a module is rejected; the message is for the caller. */
export class ModuleRejected extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'ModuleRejected'
  }
}
