/** `weir wasm check`: describes a module and whether the gateway accepts it. */
import type { ModuleDescription } from '../../../wasm-sdk/abi.ts'
import { printable, printResult } from '../../cli/output.ts'
import type { WasmConfig } from '../config.ts'
import { PAGE_BYTES } from '../rewrite/plan.ts'
import { checkModule, type Finding } from '../testing/conformance.ts'
import type { ModuleReport } from '../testing/inspect.ts'
import {
  fileProblem,
  type LimitOptions,
  moduleFileOf,
  readAttachPoints,
  readLimits,
  readModuleBytes,
  readSettings,
} from './arguments.ts'
import { showBytes } from './units.ts'

interface CheckOptions extends LimitOptions {
  readonly attach?: string
  readonly config?: readonly string[]
  readonly json?: boolean
}

export async function checkFile(place: string, options: CheckOptions): Promise<void> {
  const file = moduleFileOf(place)
  const bytes = await readModuleBytes(file)
  const limits = await readLimits(options)
  const attachPoints = readAttachPoints(options.attach) ?? undefined
  const config = readSettings('--config', options.config)
  const report = await checkModule(bytes, { attachPoints, config, usesWasi: options.wasi, limits })
  const findings = [...report.findings, ...fileFindings(file, limits)].toSorted(
    (a, b) => Number(b.level === 'problem') - Number(a.level === 'problem'),
  )
  const isOk = findings.every(({ level }) => level === 'warning')
  const description = isOk ? report.description : null
  const { problem: _problem, hasDescription: _hasDescription, ...module } = report.module
  printResult(options.json, { isOk, file, ...module, description, findings }, () =>
    render(place, isOk, report.module, description, findings, limits),
  )
  if (!isOk) process.exitCode = 1
}

/** Problems of the file itself: its size and name. */
function fileFindings(file: string, limits: WasmConfig): Finding[] {
  const message = fileProblem(file, limits)
  if (message === null) return []
  return [{ level: 'problem', code: 'rejected', message, next: 'the gateway does not read such a file' }]
}

function render(
  place: string,
  isOk: boolean,
  module: ModuleReport,
  description: ModuleDescription | null,
  findings: readonly Finding[],
  limits: WasmConfig,
): string {
  const lines = [`${place}: ${formatName(module.format)}, ${showBytes(module.bytes)}`]
  if (module.problem === null) {
    lines.push(`  sha256      ${module.sha256}`)
    lines.push(`  attach to   ${module.attachPoints.join(', ') || 'none'}`)
    lines.push(`  exports     ${names(module.exports)}`)
    lines.push(`  imports     ${names(module.imports)}`)
    lines.push(`  memory      ${showMemory(module, limits)}`)
  }
  if (description !== null) {
    lines.push(`  interface   version ${description.abi}`)
    lines.push(`  needs       ${showNeeds(description.needs ?? {})}`)
    lines.push(`  instance    ${description.instance ?? 'fresh'}`)
    lines.push(`  on failure  ${description.on_failure ?? 'open'}`)
  }
  for (const { level, message, next } of findings) lines.push(`${level}: ${message}`, `  ${next}`)
  lines.push(
    isOk ? 'the gateway accepts the module' : 'the gateway would reject the module, or its calls would fail',
  )
  return printable(lines.join('\n'))
}

function formatName(format: ModuleReport['format']): string {
  if (format === 'unknown') return 'not a WebAssembly module'
  return `a WebAssembly ${format}${format === 'core' ? ' module' : ''}`
}

function names(list: readonly { readonly name: string; readonly kind: string }[]): string {
  return list.map(({ name, kind }) => (kind === 'function' ? name : `${name} (${kind})`)).join(', ') || 'none'
}

function showMemory({ memories }: ModuleReport, { memoryPages }: WasmConfig): string {
  const [memory] = memories
  if (memory === undefined) return 'none'
  const most = Math.min(memory.maxPages ?? memoryPages, memoryPages)
  return `${showBytes(memory.minPages * PAGE_BYTES)} initially, at most ${showBytes(most * PAGE_BYTES)}`
}

function showNeeds(needs: NonNullable<ModuleDescription['needs']>): string {
  const headers = (what: boolean | readonly string[] | undefined, whose: string) => {
    if (what === false || (Array.isArray(what) && what.length === 0)) return []
    return [
      what === true || what === undefined
        ? `all ${whose} headers`
        : `${whose} headers: ${(what as string[]).join(', ')}`,
    ]
  }
  const parts = [
    ...headers(needs.headers, 'request'),
    ...headers(needs.response_headers, 'response'),
    ...(needs.request_body === true ? ['request bodies'] : []),
    ...(needs.response_body === true ? ['response bodies'] : []),
  ]
  return parts.join('; ') || 'no headers and no bodies'
}
