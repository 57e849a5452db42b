/** Checks the imports and exports of a module against the interface. */
import { type AttachPoint, DESCRIBE_EXPORT, EXPORT_OF_ATTACH_POINT } from '../../../wasm-sdk/abi.ts'
import {
  functionTypes,
  KIND,
  kindName,
  type ModuleImport,
  type ModuleParts,
} from '../rewrite/module-parts.ts'
import { KERNEL_NAMESPACE } from '../rewrite/rewrite-module.ts'
import {
  nearestName,
  offeredSignature,
  type Signature,
  sameSignature,
  showSignature,
  signatureOf,
} from './host-imports.ts'

export const WASI_NAMESPACE = 'wasi_snapshot_preview1'
/** Called once before anything else, if exported. */
export const INITIALIZE_EXPORT = '_initialize'

const HANDLERS: ReadonlySet<string> = new Set([DESCRIBE_EXPORT, ...Object.values(EXPORT_OF_ATTACH_POINT)])

/** Why the gateway rejects a module. */
export interface ModuleProblem {
  readonly code: string
  readonly message: string
  /** How to fix it. */
  readonly next: string
}

/** @param attachPoints whose exports the module must have */
export function moduleProblems(
  parts: ModuleParts,
  attachPoints: readonly AttachPoint[],
  usesWasi: boolean,
): ModuleProblem[] {
  return [
    ...parts.imports.flatMap((one) => importProblem(parts, one, usesWasi) ?? []),
    ...attachPoints.flatMap((point) => exportProblem(parts, point) ?? []),
    ...handlerProblems(parts),
  ]
}

function importProblem(
  { types }: ModuleParts,
  { module, name, kind, type }: ModuleImport,
  usesWasi: boolean,
): ModuleProblem | null {
  // A missing WASI function fails the trial instantiation: the runtime knows which ones it has.
  if (module === WASI_NAMESPACE && kind === KIND.function && usesWasi) return null
  const offered = kind === KIND.function ? offeredSignature(module, name) : null
  if (offered === null) {
    const what = kind === KIND.function ? '' : `the ${kindName(kind)} `
    const message = `the module imports ${what}${module}.${name}, which the gateway does not provide`
    return { message, ...remedyOf(module, name, kind) }
  }
  const given = signatureOf(types[type])
  if (sameSignature(given, offered)) return null
  return {
    code: 'import_signature',
    message: `the module imports ${module}.${name} as ${showSignature(given)}`,
    next: `declare it as ${showSignature(offered)}`,
  }
}

function remedyOf(module: string, name: string, kind: number): Omit<ModuleProblem, 'message'> {
  if (module === WASI_NAMESPACE)
    return {
      code: 'import_wasi',
      next: 'build without WASI, or register the module with wasi: true (no files, environment or sockets)',
    }
  // It would block the thread of the module.
  if (module === KERNEL_NAMESPACE && name.startsWith('http_'))
    return {
      code: 'import_http',
      next: 'use the action fetch: the gateway sends the request and calls the module again',
    }
  const code = 'import_unknown'
  if (kind !== KIND.function) return { code, next: 'define it in the module: only functions can be imported' }
  const nearest = nearestName(module, name)
  return { code, next: nearest === null ? 'see the host functions in ABI.md' : `did you mean ${nearest}?` }
}

function exportProblem(parts: ModuleParts, point: AttachPoint): ModuleProblem | null {
  const name = EXPORT_OF_ATTACH_POINT[point]
  if (exportsFunction(parts, name)) return null
  return {
    code: 'export_missing',
    message: `the module cannot be attached to ${point}: export ${name} is missing`,
    next: 'export a function of that name',
  }
}

/** Handlers take no parameters and return an i32 or nothing. */
function handlerProblems(parts: ModuleParts): ModuleProblem[] {
  const types = functionTypes(parts)
  return parts.exports
    .filter(({ name, kind }) => kind === KIND.function && HANDLERS.has(name))
    .map(({ name, index }) => ({ name, signature: signatureOf(types[index]) }))
    .filter(({ signature }) => !isHandler(signature))
    .map(({ name, signature }) => ({
      code: 'export_signature',
      message: `the module exports ${name} as ${showSignature(signature)}`,
      next: 'declare it as () -> (i32), 0 on success',
    }))
}

function isHandler({ parameters, results }: Signature): boolean {
  return parameters.length === 0 && (results.length === 0 || (results.length === 1 && results[0] === 'i32'))
}

export function exportsFunction({ exports }: ModuleParts, name: string): boolean {
  return exports.some((one) => one.name === name && one.kind === KIND.function)
}
