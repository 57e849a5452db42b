/** Checks a compiled module against the interface: what it imports, and what it exports for its attach points. */
import {
  type AttachPoint,
  DESCRIBE_EXPORT,
  EXPORT_OF_ATTACH_POINT,
  HOST_FUNCTIONS,
  HOST_NAMESPACE,
} from '../../../wasm-sdk/abi.ts'
import { BadModule } from '../rewrite/bad-module.ts'

export const KERNEL_NAMESPACE = 'extism:host/env'
export const WASI_NAMESPACE = 'wasi_snapshot_preview1'
/** Called once, before anything else, where a module has it. */
export const INITIALIZE_EXPORT = '_initialize'

/** Those of the host SDK, and those that we add for newer guest libraries. @source wasm facts 13, 13.1 */
const KERNEL_FUNCTIONS = new Set([
  'alloc',
  'config_get',
  'error_get',
  'error_set',
  'free',
  'get_log_level',
  'http_headers',
  'http_request',
  'http_status_code',
  'input_length',
  'input_load_u64',
  'input_load_u8',
  'input_offset',
  'length',
  'length_unsafe',
  'load_u64',
  'load_u8',
  'log_debug',
  'log_error',
  'log_info',
  'log_trace',
  'log_warn',
  'output_set',
  'store_u64',
  'store_u8',
  'var_get',
  'var_set',
])

/** @throws BadModule naming the first import that is not offered */
export function checkImports(module: WebAssembly.Module, usesWasi: boolean): void {
  for (const { module: namespace, name, kind } of WebAssembly.Module.imports(module)) {
    if (kind !== 'function')
      throw new BadModule(`the module imports the ${kind} ${namespace}.${name}; only functions are offered`)
    if (isOffered(namespace, name, usesWasi)) continue
    const isWasi = namespace === WASI_NAMESPACE
    throw new BadModule(
      `the module imports ${namespace}.${name}, which is not offered${isWasi ? ' unless it is registered with wasi: true' : ''}`,
    )
  }
}

function isOffered(namespace: string, name: string, usesWasi: boolean): boolean {
  if (namespace === KERNEL_NAMESPACE) return KERNEL_FUNCTIONS.has(name)
  if (namespace === HOST_NAMESPACE) return Object.hasOwn(HOST_FUNCTIONS, name)
  if (namespace === 'env') return name === 'abort'
  // Which functions there are is the runtime's to know: a missing one fails the trial instantiation.
  return namespace === WASI_NAMESPACE && usesWasi
}

/** @throws BadModule naming the first export that is missing */
export function checkExports(module: WebAssembly.Module, attachPoints: readonly AttachPoint[]): void {
  for (const point of attachPoints) {
    const name = EXPORT_OF_ATTACH_POINT[point]
    if (!hasFunction(module, name))
      throw new BadModule(`the module has no exported function ${name}, which ${point} calls`)
  }
}

export function hasInitialize(module: WebAssembly.Module): boolean {
  return hasFunction(module, INITIALIZE_EXPORT)
}

export function hasDescribe(module: WebAssembly.Module): boolean {
  return hasFunction(module, DESCRIBE_EXPORT)
}

function hasFunction(module: WebAssembly.Module, name: string): boolean {
  return WebAssembly.Module.exports(module).some((one) => one.name === name && one.kind === 'function')
}
