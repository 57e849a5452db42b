/** Checks a module against the interface of the gateway; each finding has a fix. */
import { EXPORT_OF_ATTACH_POINT, type ModuleDescription } from '../../../wasm-sdk/abi.ts'
import { moduleProblems } from '../instances/check-module.ts'
import { readParts } from '../rewrite/module-parts.ts'
import {
  type ConformanceOptions,
  type Finding,
  problem as problemOf,
  tryModule,
  unsupported,
  warning,
} from './conformance-trial.ts'
import { inspectModule, type ModuleReport } from './inspect.ts'
import { withDefaultLimits } from './trial-module.ts'

interface ConformanceReport {
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
    const { attachPoints = [], usesWasi = false } = options
    for (const problem of moduleProblems(readParts(bytes), attachPoints, usesWasi))
      findings.push({ level: 'problem', ...problem })
    findings.push(...checkHandlers(module))
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
  return problemOf('not_a_module', problem ?? 'the file cannot be read', next)
}

/** Findings about handlers that are no reason for a rejection at other attach points. */
function checkHandlers({ attachPoints, exports, hasDescription }: ModuleReport): Finding[] {
  const findings: Finding[] = []
  const handlers = Object.values(EXPORT_OF_ATTACH_POINT)
  if (attachPoints.length === 0)
    findings.push(
      problemOf('no_handler', 'the module exports no handler', `export one of ${handlers.join(', ')}`),
    )
  for (const { name, kind } of exports) {
    const isHandler = handlers.some((handler) => handler === name)
    if (kind !== 'function' || isHandler || !LOOKS_LIKE_HANDLER.test(name)) continue
    const message = `${name} looks like a handler, but is never called`
    findings.push(warning('export_unknown', message, `handlers are ${handlers.join(', ')}`))
  }
  if (!hasDescription) {
    const message = 'the module does not export `describe`: it receives all headers and no body'
    findings.push(warning('no_description', message, 'export `describe`, see ABI.md'))
  }
  return findings
}

function checkMemory({ memories }: ModuleReport, pages: number): Finding[] {
  return memories
    .filter(({ minPages }) => minPages > pages)
    .map(({ minPages }) => {
      const message = `the memory starts with ${minPages} pages of 64 KiB, the gateway allows ${pages}`
      return problemOf('memory_too_large', message, 'lower the initial memory of the build')
    })
}

function large({ bytes }: ModuleReport): Finding {
  const message = `the module has ${Math.round(bytes / 1024)} KiB; each thread keeps it compiled`
  return warning('large_module', message, 'build with optimisation and without debug information')
}
