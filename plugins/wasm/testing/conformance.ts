/** Checks a module against the interface of the gateway, and runs it with sample input; each finding has a fix. */
import { type AttachPoint, EXPORT_OF_ATTACH_POINT, type ModuleDescription } from '../../../wasm-sdk/abi.ts'
import { type ModuleProblem, moduleProblems } from '../instances/check-module.ts'
import { readParts } from '../rewrite/module-parts.ts'
import { UnsupportedFeature } from '../rewrite/module-rejected.ts'
import { promptEntries, toFirstInput } from './case-input.ts'
import { checkOutput } from './checked-output.ts'
import { inspectModule, type ModuleReport } from './inspect.ts'
import type { CaseStep } from './module-case.ts'
import { ModuleRunner } from './runner.ts'
import { type TrialSettings, withDefaultLimits } from './trial-module.ts'

type ConformanceOptions = Omit<TrialSettings, 'bytes'>

export interface Finding extends ModuleProblem {
  /** problem: the gateway rejects the module or its calls fail. */
  readonly level: 'problem' | 'warning'
}

interface ConformanceReport {
  readonly isOk: boolean
  readonly module: ModuleReport
  readonly findings: readonly Finding[]
  /** Null unless the module started. */
  readonly description: ModuleDescription | null
}

/**
 * Calls of a warm instance, doubled up to `MAX_REUSE_CALLS` until its memory grows by less than a quarter per call of what it
 * grew by at first: a leak grows evenly, a heap with garbage collection levels off (that of Go at about 8 MiB).
 */
const REUSE_CALLS = 200
const MAX_REUSE_CALLS = 6_400
const BODY = { model: 'm', messages: [{ role: 'user', content: 'Grüße 😀' }] }

/** Sample input by attach point. */
export const SAMPLES: Readonly<Record<AttachPoint, Omit<CaseStep, 'on' | 'expect'>>> = {
  OnRequest: { request: { headers: { 'content-type': 'application/json' }, body: BODY } },
  OnResponse: { response: { status: 200, body: { object: 'chat.completion', choices: [] } } },
  OnError: { response: { status: 500 }, error: {} },
  OnStreamEvent: {
    events: [
      {
        data: {
          object: 'chat.completion.chunk',
          choices: [{ index: 0, delta: { content: 'Grüße 😀' } }],
        },
      },
    ],
  },
  OnText: { text: { pieces: ['Grüße 😀'] } },
  OnPromptText: { prompt: [{ role: 'user', text: 'Grüße 😀' }] },
  OnToolCall: { tool: { name: 'search', arguments: { query: 'Grüße 😀' } } },
  OnPick: { pick: { model: 'm', candidates: [{ in_flight: 2 }, { labels: { zone: 'Zürich 😀' } }] } },
}

const PAGE_BYTES = 65_536
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
    for (const one of moduleProblems(readParts(bytes), attachPoints, usesWasi))
      findings.push({ level: 'problem', ...one })
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

function unreadable({ format, problem: reason }: ModuleReport, bytes: Uint8Array): Finding {
  // V8 accepts it: the gateway cannot limit or restore what it uses.
  if (format === 'core' && WebAssembly.validate(Uint8Array.from(bytes))) return unsupported(reason ?? '')
  const next =
    format === 'component'
      ? 'build for a core target such as wasm32-unknown-unknown, without component tools'
      : 'use the .wasm file that the compiler wrote; ABI.md lists what the gateway runs'
  return problem('not_a_module', reason ?? 'the file cannot be read', next)
}

/** Findings about handlers that are no reason for a rejection at other attach points. */
function checkHandlers({ attachPoints, exports, hasDescription }: ModuleReport): Finding[] {
  const findings: Finding[] = []
  const handlers = Object.values(EXPORT_OF_ATTACH_POINT)
  if (attachPoints.length === 0)
    findings.push(
      problem('no_handler', 'the module exports no handler', `export one of ${handlers.join(', ')}`),
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
      return problem('memory_too_large', message, 'lower the initial memory of the build')
    })
}

function large({ bytes }: ModuleReport): Finding {
  const message = `the module has ${Math.round(bytes / 1024)} KiB; each thread keeps it compiled`
  return warning('large_module', message, 'build with optimisation and without debug information')
}

async function tryModule(
  bytes: Uint8Array,
  points: readonly AttachPoint[],
  options: ConformanceOptions,
): Promise<{ findings: Finding[]; description: ModuleDescription | null }> {
  let runner: ModuleRunner
  try {
    const limits = { ...options.limits, reuseCalls: MAX_REUSE_CALLS + 1 }
    runner = await ModuleRunner.open({ bytes, ...options, limits })
  } catch (error) {
    return { findings: [rejection(error)], description: null }
  }
  try {
    const findings: Finding[] = []
    if (runner.remark !== null)
      findings.push(warning('description', runner.remark, 'the gateway ignores it; see `describe` in ABI.md'))
    const maxBytes = withDefaultLimits(options.limits).memoryPages * PAGE_BYTES
    for (const point of points) findings.push(...(await tryPoint(runner, point, maxBytes)))
    return { findings, description: runner.description }
  } finally {
    await runner.close()
  }
}

/** The reason for which the gateway rejects the module. */
function rejection(error: unknown): Finding {
  const { message } = error as Error
  if (error instanceof UnsupportedFeature) return unsupported(message)
  return problem('rejected', message, 'the gateway rejects the registration for this reason; see ABI.md')
}

function unsupported(message: string): Finding {
  const next = 'build without this feature; ABI.md lists those that the gateway runs'
  return problem('unsupported_feature', message, next)
}

function problem(code: string, message: string, next: string): Finding {
  return { level: 'problem', code, message, next }
}

function warning(code: string, message: string, next: string): Finding {
  return { level: 'warning', code, message, next }
}

async function tryPoint(runner: ModuleRunner, on: AttachPoint, maxBytes: number): Promise<Finding[]> {
  const { head, body } = toFirstInput({ on, ...SAMPLES[on], expect: {} }, runner.description.needs)
  const call = () => runner.call(on, head, body)
  const first = await call()
  if (first.outcome === 'timeout')
    return [problem('too_slow', `${on}: ${first.problem}`, 'look for an endless loop')]
  if (first.outcome === 'failed') {
    const message = `${on}: a call with sample input failed: ${first.problem}`
    return [warning('call_failed', message, 'if the module needs settings, pass them with --config')]
  }
  const findings = checkSampleOutput(first.output, on)
  const { instance } = runner.description
  if (instance === 'fresh') return findings
  return [...findings, ...(await reuseProblems(on, call, maxBytes))]
}

function checkSampleOutput(output: Parameters<typeof checkOutput>[0], on: AttachPoint): Finding[] {
  try {
    const { ignored } = checkOutput(output, on, shownIn(SAMPLES[on]))
    return ignored.map((what) => warning('ignored', `${on}: ${what}`, 'the gateway ignores it, see ABI.md'))
  } catch (cause) {
    return [problem('bad_output', `${on}: ${(cause as Error).message}`, 'see the output frame in ABI.md')]
  }
}

function shownIn(sample: (typeof SAMPLES)[AttachPoint]): Parameters<typeof checkOutput>[2] {
  const { prompt = [], pick } = sample
  return { candidates: pick?.candidates?.length, prompt: promptEntries(prompt) }
}

/** Checks that a warm instance can be called many times, and that its memory stops growing. */
async function reuseProblems(
  on: AttachPoint,
  call: () => ReturnType<ModuleRunner['call']>,
  maxBytes: number,
): Promise<Finding[]> {
  let half = 0
  let firstSlope = 0
  for (let count = 1, end = REUSE_CALLS; ; count++) {
    const { outcome, problem: reason, memoryBytes } = await call()
    const grows = () => memoryGrows(on, count - end / 2, half, memoryBytes)
    if (outcome !== 'ok') {
      if (end > REUSE_CALLS) return [grows()]
      const message = `${on}: call ${count + 1} of a warm instance failed: ${reason}`
      return [problem('reuse_failed', message, 'free memory in smaller steps, or use fresh instances')]
    }
    if (count === end / 2) half = memoryBytes
    if (memoryBytes >= maxBytes && end > REUSE_CALLS) return [grows()]
    if (count < end) continue
    const slope = (memoryBytes - half) / (end / 2)
    if (slope <= firstSlope / 4) return []
    if (end === MAX_REUSE_CALLS) return [grows()]
    if (firstSlope === 0) firstSlope = slope
    half = memoryBytes
    end *= 2
  }
}

function memoryGrows(on: AttachPoint, calls: number, from: number, to: number): Finding {
  const perCall = Math.round((to - from) / calls)
  const message = `${on}: memory of a warm instance does not level off: ${perCall} bytes per call over the last ${calls} calls (from ${from} to ${to} bytes)`
  const next = 'build with the runtime `minimal`, keep nothing in global variables, or use fresh instances'
  return problem('memory_grows', message, next)
}
