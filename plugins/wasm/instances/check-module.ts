/** Checks the imports and exports of a compiled module against the interface. */
import { type AttachPoint, DESCRIBE_EXPORT, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import { BadModule } from '../rewrite/bad-module.ts'
import { offeredSignature } from './host-imports.ts'

export const WASI_NAMESPACE = 'wasi_snapshot_preview1'
/** Called once before anything else, if exported. */
export const INITIALIZE_EXPORT = '_initialize'

/** @throws BadModule naming the first import that the gateway does not provide */
export function checkImports(module: WebAssembly.Module, usesWasi: boolean): void {
  for (const { module: namespace, name, kind } of WebAssembly.Module.imports(module)) {
    if (kind !== 'function')
      throw new BadModule(
        `the module imports the ${kind} ${namespace}.${name}; only functions can be imported`,
      )
    if (isOffered(namespace, name, usesWasi)) continue
    const isWasi = namespace === WASI_NAMESPACE
    throw new BadModule(
      `the module imports ${namespace}.${name}, which the gateway does not provide${isWasi ? ' unless the module is registered with wasi: true' : ''}`,
    )
  }
}

function isOffered(namespace: string, name: string, usesWasi: boolean): boolean {
  // A missing WASI function fails the trial instantiation: the runtime knows which ones it has.
  if (namespace === WASI_NAMESPACE) return usesWasi
  return offeredSignature(namespace, name) !== null
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
