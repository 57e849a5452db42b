/** Checks the imports and exports of a compiled module against the interface. */
import { type AttachPoint, DESCRIBE_EXPORT, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import { BadModule } from '../rewrite/bad-module.ts'
import { KIND, type ModuleParts } from '../rewrite/module-parts.ts'
import { KERNEL_NAMESPACE } from '../rewrite/rewrite-module.ts'
import {
  offeredSignature,
  type Signature,
  sameSignature,
  showSignature,
  signatureOf,
} from './host-imports.ts'

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
    throw new BadModule(
      `the module imports ${namespace}.${name}, which the gateway does not provide${remedyOf(namespace, name)}`,
    )
  }
}

function isOffered(namespace: string, name: string, usesWasi: boolean): boolean {
  // A missing WASI function fails the trial instantiation: the runtime knows which ones it has.
  if (namespace === WASI_NAMESPACE) return usesWasi
  return offeredSignature(namespace, name) !== null
}

function remedyOf(namespace: string, name: string): string {
  if (namespace === WASI_NAMESPACE) return ' unless the module is registered with wasi: true'
  return isExtismHttp(namespace, name) ? '; use the action fetch' : ''
}

/** A function of Extism for HTTP, which would block the thread of the module. */
export function isExtismHttp(namespace: string, name: string): boolean {
  return namespace === KERNEL_NAMESPACE && name.startsWith('http_')
}

/** @throws BadModule naming the first export that is missing */
export function checkExports(module: WebAssembly.Module, attachPoints: readonly AttachPoint[]): void {
  for (const point of attachPoints) {
    const name = EXPORT_OF_ATTACH_POINT[point]
    if (!hasFunction(module, name))
      throw new BadModule(`the module has no exported function ${name}, which ${point} calls`)
  }
}

/** @throws BadModule naming the first import or handler with another signature than the interface has */
export function checkSignatures({ types, imports, functions, exports }: ModuleParts): void {
  const ofFunctions = [
    ...imports.filter(({ kind }) => kind === KIND.function).map(({ type }) => type),
    ...functions,
  ].map((type) => signatureOf(types[type]))
  for (const { module, name, kind, type } of imports) {
    const offered = kind === KIND.function ? offeredSignature(module, name) : null
    if (offered === null) continue
    const given = signatureOf(types[type])
    if (!sameSignature(given, offered))
      throw new BadModule(
        `the module imports ${module}.${name} as ${showSignature(given)}; declare it as ${showSignature(offered)}`,
      )
  }
  for (const { name, kind, index } of exports)
    if (kind === KIND.function && HANDLERS.has(name) && !isHandler(ofFunctions[index]))
      throw new BadModule(
        `the module exports ${name} as ${showSignature(ofFunctions[index])}; declare it as () -> (i32)`,
      )
}

const HANDLERS: ReadonlySet<string> = new Set([DESCRIBE_EXPORT, ...Object.values(EXPORT_OF_ATTACH_POINT)])

/** Handlers take no parameters and return an i32 or nothing. */
export function isHandler({ parameters, results }: Signature): boolean {
  return parameters.length === 0 && (results.length === 0 || (results.length === 1 && results[0] === 'i32'))
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
