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
  uploads_disabled: {
    kind: 'forbidden',
    source: 'client',
    text: () => 'uploads of modules are disabled (plugins.wasm.allowUploads)',
  },
  upload_too_large: {
    kind: 'too_large',
    source: 'client',
    text: (bytes: number, limitBytes: number) =>
      `the module has ${bytes} bytes, more than plugins.wasm.maxFileBytes (${limitBytes})`,
  },
  no_wasm_file: {
    kind: 'bad_request',
    source: 'client',
    text: (bytes: number) =>
      `the body must be a WebAssembly module, which begins with \\0asm (got ${bytes} other bytes)`,
  },
  module_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (uuid: string) => `no module has the uuid ${uuid.slice(0, 64)}`,
  },
  module_log_forbidden: {
    kind: 'forbidden',
    source: 'client',
    text: () => 'the log lines of modules require a key with role admin',
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
