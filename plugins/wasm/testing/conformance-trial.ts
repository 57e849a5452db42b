/** Runs a module with sample input: describe, then each handler. */
import type { AttachPoint, ModuleDescription } from '../../../wasm-sdk/abi.ts'
import type { ModuleProblem } from '../instances/check-module.ts'
import { UnsupportedFeature } from '../rewrite/module-rejected.ts'
import { toFirstInput } from './case-input.ts'
import { checkOutput } from './checked-output.ts'
import type { CaseStep } from './module-case.ts'
import { ModuleRunner } from './runner.ts'
import type { TrialSettings } from './trial-module.ts'

export type ConformanceOptions = Omit<TrialSettings, 'bytes'>

export interface Finding extends ModuleProblem {
  /** problem: the gateway rejects the module or its calls fail. */
  readonly level: 'problem' | 'warning'
}

/** Calls after which the memory of a warm instance must have stopped growing. */
const REUSE_CALLS = 200
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
  OnToolCall: { tool: { name: 'search', arguments: { query: 'Grüße 😀' } } },
  OnPick: { pick: { model: 'm', candidates: [{ in_flight: 2 }, { labels: { zone: 'Zürich 😀' } }] } },
}

export async function tryModule(
  bytes: Uint8Array,
  points: readonly AttachPoint[],
  options: ConformanceOptions,
): Promise<{ findings: Finding[]; description: ModuleDescription | null }> {
  let runner: ModuleRunner
  try {
    runner = await ModuleRunner.open({ bytes, ...options })
  } catch (error) {
    return { findings: [rejection(error)], description: null }
  }
  try {
    const findings: Finding[] = []
    if (runner.remark !== null)
      findings.push(warning('description', runner.remark, 'the gateway ignores it; see `describe` in ABI.md'))
    for (const point of points) findings.push(...(await tryPoint(runner, point)))
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

export function unsupported(message: string): Finding {
  const next = 'build without this feature; ABI.md lists those that the gateway runs'
  return problem('unsupported_feature', message, next)
}

export function problem(code: string, message: string, next: string): Finding {
  return { level: 'problem', code, message, next }
}

export function warning(code: string, message: string, next: string): Finding {
  return { level: 'warning', code, message, next }
}

async function tryPoint(runner: ModuleRunner, on: AttachPoint): Promise<Finding[]> {
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
  return [...findings, ...(await reuseProblems(on, call, first.memoryBytes))]
}

function checkSampleOutput(output: Parameters<typeof checkOutput>[0], on: AttachPoint): Finding[] {
  try {
    const { ignored } = checkOutput(output, on, SAMPLES[on].pick?.candidates?.length)
    return ignored.map((what) => warning('ignored', `${on}: ${what}`, 'the gateway ignores it, see ABI.md'))
  } catch (cause) {
    return [problem('bad_output', `${on}: ${(cause as Error).message}`, 'see the output frame in ABI.md')]
  }
}

/** Checks that a warm instance can be called many times, and that its memory stops growing. */
async function reuseProblems(
  on: AttachPoint,
  call: () => ReturnType<ModuleRunner['call']>,
  firstBytes: number,
): Promise<Finding[]> {
  let half = firstBytes
  let last = firstBytes
  for (let count = 1; count <= REUSE_CALLS; count++) {
    const { outcome, problem: reason, memoryBytes } = await call()
    if (outcome !== 'ok') {
      const message = `${on}: call ${count + 1} of a warm instance failed: ${reason}`
      return [problem('reuse_failed', message, 'free memory in smaller steps, or use fresh instances')]
    }
    last = memoryBytes
    if (count === REUSE_CALLS / 2) half = last
  }
  if (last <= half) return []
  const message = `memory of the instance still grows after ${REUSE_CALLS} calls (${half}, then ${last} bytes)`
  const next = 'build with the runtime `minimal`, keep nothing in global variables, or use fresh instances'
  return [problem('memory_grows', message, next)]
}
