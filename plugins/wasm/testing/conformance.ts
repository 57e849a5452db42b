/** Checks a module against the interface of the gateway; each finding has a fix. */
import { type AttachPoint, EXPORT_OF_ATTACH_POINT, type ModuleDescription } from '../../../wasm-sdk/abi.ts'
import { isExtismHttp, isHandler, WASI_NAMESPACE } from '../instances/check-module.ts'
import {
  isKnownNamespace,
  nearestName,
  offeredSignature,
  sameSignature,
  showSignature,
} from '../instances/host-imports.ts'
import { type ConformanceOptions, type Finding, tryModule, unsupported } from './conformance-trial.ts'
import { inspectModule, type ModuleImport, type ModuleReport } from './inspect.ts'
import { withDefaultLimits } from './trial-module.ts'

export interface ConformanceReport {
  readonly isOk: boolean
  readonly module: ModuleReport
  readonly findings: readonly Finding[]
  /** Null unless the module started. */
  readonly description: ModuleDescription | null
}

const LARGE_MODULE_BYTES = 1024 * 1024
const LOOKS_LIKE_HANDLER = /^on[_A-Z]/

/** Inspects the module, then runs each handler with sample input. Does not throw for an invalid module. */
export async function checkModule(
  bytes: Uint8Array,
  options: ConformanceOptions = {},
): Promise<ConformanceReport> {
  const module = inspectModule(bytes)
  const findings: Finding[] = []
  let description: ModuleDescription | null = null
  if (module.problem !== null) findings.push(unreadable(module, bytes))
  else {
    findings.push(...checkExports(module, options.attachPoints))
    findings.push(...module.imports.flatMap((one) => checkImport(one, options.usesWasi ?? false)))
    findings.push(...checkMemory(module, withDefaultLimits(options.limits).memoryPages))
    if (module.bytes > LARGE_MODULE_BYTES) findings.push(large(module))
    if (findings.every(({ level }) => level === 'warning')) {
      const trial = await tryModule(bytes, module.attachPoints, options)
      findings.push(...trial.findings)
      description = trial.description
    }
  }
  return { isOk: findings.every(({ level }) => level === 'warning'), module, findings, description }
}

function unreadable({ format, problem }: ModuleReport, bytes: Uint8Array): Finding {
  // V8 accepts it: the gateway cannot limit or restore what it uses.
  if (format === 'core' && WebAssembly.validate(Uint8Array.from(bytes))) return unsupported(problem ?? '')
  const next =
    format === 'component'
      ? 'build for a core target such as wasm32-unknown-unknown, without component tools'
      : 'use the .wasm file that the compiler wrote; ABI.md lists what the gateway runs'
  return { level: 'problem', code: 'not_a_module', message: problem ?? 'the file cannot be read', next }
}

function checkExports(module: ModuleReport, wanted: readonly AttachPoint[] = []): Finding[] {
  const findings: Finding[] = []
  const known = new Set<string>(Object.values(EXPORT_OF_ATTACH_POINT))
  for (const point of wanted.filter((point) => !module.attachPoints.includes(point))) {
    const message = `the module cannot be attached to ${point}: export ${EXPORT_OF_ATTACH_POINT[point]} is missing`
    findings.push({
      level: 'problem',
      code: 'export_missing',
      message,
      next: `export a function of that name`,
    })
  }
  if (module.attachPoints.length === 0) {
    const message = 'the module exports no handler'
    findings.push({
      level: 'problem',
      code: 'no_handler',
      message,
      next: `export one of ${[...known].join(', ')}`,
    })
  }
  for (const { name, kind, signature } of module.exports) {
    if (kind !== 'function') continue
    const isOurs = known.has(name) || name === 'describe'
    if (isOurs && signature !== null && !isHandler(signature)) {
      const message = `${name} is ${showSignature(signature)}`
      const next = 'handlers take no parameters and return an i32, 0 on success'
      findings.push({ level: 'problem', code: 'export_signature', message, next })
    }
    if (!isOurs && LOOKS_LIKE_HANDLER.test(name)) {
      const message = `${name} looks like a handler, but is never called`
      findings.push({
        level: 'warning',
        code: 'export_unknown',
        message,
        next: `handlers are ${[...known].join(', ')}`,
      })
    }
  }
  if (!module.hasDescription) {
    const message = 'the module does not export `describe`: it receives all headers and no body'
    findings.push({
      level: 'warning',
      code: 'no_description',
      message,
      next: 'export `describe`, see ABI.md',
    })
  }
  return findings
}

function checkImport({ module, name, kind, signature }: ModuleImport, usesWasi: boolean): Finding[] {
  const code = 'import_unknown'
  const message = `the module imports ${kind === 'function' ? '' : `the ${kind} `}${name} from ${module}, which the gateway does not provide`
  if (module === WASI_NAMESPACE) {
    if (usesWasi) return []
    const next =
      'build without WASI, or register the module with `wasi: true` (no files, environment or sockets)'
    return [{ level: 'problem', code: 'import_wasi', message, next }]
  }
  if (kind !== 'function') return [{ level: 'problem', code, message, next: 'define it in the module' }]
  const allowed = offeredSignature(module, name)
  if (allowed === null) {
    const nearest = nearestName(module, name)
    if (isExtismHttp(module, name)) {
      const next =
        'output the action `fetch` instead: the gateway sends the request and calls the module again'
      return [{ level: 'problem', code: 'import_http', message, next }]
    }
    const next =
      isKnownNamespace(module) && nearest !== null
        ? `did you mean ${nearest}?`
        : 'see the host functions in ABI.md'
    return [{ level: 'problem', code, message, next }]
  }
  if (signature === null || sameSignature(signature, allowed)) return []
  const next = `declare it as ${showSignature(allowed)}`
  return [
    {
      level: 'problem',
      code: 'import_signature',
      message: `${name} is imported as ${showSignature(signature)}`,
      next,
    },
  ]
}

function checkMemory({ memories }: ModuleReport, pages: number): Finding[] {
  return memories
    .filter(({ minPages }) => minPages > pages)
    .map(({ minPages }) => ({
      level: 'problem',
      code: 'memory_too_large',
      message: `the memory starts with ${minPages} pages of 64 KiB, the gateway allows ${pages}`,
      next: 'lower the initial memory of the build',
    }))
}

function large({ bytes }: ModuleReport): Finding {
  return {
    level: 'warning',
    code: 'large_module',
    message: `the module has ${Math.round(bytes / 1024)} KiB; each thread keeps it compiled`,
    next: 'build with optimisation and without debug information',
  }
}
