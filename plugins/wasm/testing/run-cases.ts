/** Runs cases against a module. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { AttachPoint, FetchedHead, GuestInput } from '../../../wasm-sdk/abi.ts'
import { toEntries } from '../instances/phase-output.ts'
import { type CallInput, DEFAULT_NOW_MS, toBytes, toInput, toPairs } from './case-input.ts'
import { type CheckedOutput, CONTINUE, checkOutput, type RequestedFetch } from './checked-output.ts'
import { differences, type Observed } from './compare.ts'
import { type CaseEvent, type CaseFetched, type CaseStep, type ModuleCase, readCase } from './module-case.ts'
import { type CallResult, ModuleRunner, type RunnerOptions } from './runner.ts'

export interface CaseResult {
  readonly title: string
  readonly isOk: boolean
  readonly steps: readonly StepResult[]
}

export interface StepResult {
  /** One sentence per difference. */
  readonly differences: readonly string[]
  /** Result of the last run of the step. */
  readonly observed: Observed
  /** Longest call, time in the guest. */
  readonly elapsedMs: number
  /** Largest memory of the instance. */
  readonly memoryBytes: number
}

/** End marker of chat streams, which is not shown to modules. */
const STREAM_END = '[DONE]'

interface Call {
  readonly result: CallResult
  readonly answer: CheckedOutput | null
  readonly failure: string | null
}

/** @throws Error if the module cannot be opened; failed calls are part of the result */
export async function runCase(
  moduleCase: ModuleCase,
  options: Omit<RunnerOptions, 'config' | 'seed'>,
): Promise<CaseResult> {
  const { title, config = {}, steps } = moduleCase
  const runner = await ModuleRunner.open({ ...options, config, seed: title })
  try {
    const results: StepResult[] = []
    let nowMs = moduleCase.now_ms ?? DEFAULT_NOW_MS
    for (const step of steps) {
      nowMs += step.advance_ms ?? 0
      results.push(await runStep(runner, step, nowMs))
    }
    return { title, isOk: results.every((result) => result.differences.length === 0), steps: results }
  } finally {
    await runner.close()
  }
}

async function runStep(runner: ModuleRunner, step: CaseStep, nowMs: number): Promise<StepResult> {
  let result = await runOnce(runner, step, nowMs)
  for (let run = 1; run < (step.repeat ?? 1) && result.differences.length === 0; run++) {
    result = await runOnce(runner, step, nowMs)
  }
  return result
}

async function runOnce(runner: ModuleRunner, step: CaseStep, nowMs: number): Promise<StepResult> {
  const input = toInput(step, runner.description.needs, nowMs)
  const { calls, events = [], pieces = [] } = await callsOf(runner, step, input)
  const observed = observe(calls, events, pieces, runner.metrics)
  return {
    differences: differences(step.expect, observed),
    observed,
    elapsedMs: Math.max(...calls.map(({ result }) => result.elapsedMs)),
    memoryBytes: Math.max(...calls.map(({ result }) => result.memoryBytes)),
  }
}

interface Outcome {
  readonly calls: Call[]
  readonly events?: Observed['events']
  readonly pieces?: Observed['pieces']
}

async function callsOf(runner: ModuleRunner, step: CaseStep, { head, body }: CallInput): Promise<Outcome> {
  const { on, events = [], text, fetched = [] } = step
  const results = { fetched: [...fetched] }
  if (on === 'OnStreamEvent') return runStream(runner, events, head, results)
  if (on === 'OnText') return runText(runner, text?.pieces ?? [], head, results)
  return { calls: await callThrough(runner, on, { head, body }, results) }
}

async function callOnce(
  runner: ModuleRunner,
  on: AttachPoint,
  head: GuestInput,
  body: Uint8Array,
): Promise<Call> {
  const result = await runner.call(on, head, body)
  if (result.outcome !== 'ok') return { result, answer: null, failure: result.problem }
  try {
    const prompt = head.prompt === undefined ? [] : toEntries(body.subarray(0, entriesEnd(head, body)))
    const answer = checkOutput(result.output, on, { candidates: head.pick?.candidates.length, prompt })
    return { result, answer, failure: null }
  } catch (cause) {
    return { result, answer: null, failure: (cause as Error).message }
  }
}

/** The body of a fetched response follows. */
function entriesEnd({ fetched }: GuestInput, body: Uint8Array): number {
  return body.length - (fetched?.body_bytes ?? 0)
}

/** Results that the case has for the fetches of a step, without those that were used. */
interface FetchResults {
  readonly fetched: CaseFetched[]
}

/** Calls the module again with each result that the case has for its fetches. */
async function callThrough(
  runner: ModuleRunner,
  on: AttachPoint,
  { head, body }: CallInput,
  results: FetchResults,
): Promise<Call[]> {
  const calls = [await callOnce(runner, on, head, body)]
  for (;;) {
    const last = calls[calls.length - 1]
    const fetch = last.answer?.fetch ?? null
    if (fetch === null) return calls
    const answer = results.fetched.shift()
    if (answer === undefined) {
      const failure = `it fetches ${fetch.url}, but \`fetched\` of the step has no further entry`
      return [...calls.slice(0, -1), { ...last, failure }]
    }
    const { head: fetched, body: more } = toFetched(answer)
    const state = on === 'OnStreamEvent' ? (last.answer?.state ?? head.state) : fetch.state
    calls.push(await callOnce(runner, on, { fetched, ...head, state }, Buffer.concat([body, more])))
  }
}

function toFetched({ error = null, status, headers = {}, body }: CaseFetched): {
  head: FetchedHead
  body: Uint8Array
} {
  if (error !== null)
    return { head: { error, status: 0, headers: [], body_bytes: 0 }, body: toBytes(undefined) }
  const bytes = toBytes(body)
  const pairs = toPairs(headers)
  return { head: { error, status: status ?? 200, headers: pairs, body_bytes: bytes.length }, body: bytes }
}

/** One call per piece and one for the end; the text of a failed call is passed on. */
async function runText(
  runner: ModuleRunner,
  incoming: readonly string[],
  head: GuestInput,
  results: FetchResults,
): Promise<Outcome> {
  const calls: Call[] = []
  const pieces: string[] = []
  let held = ''
  const offer = async (piece: string, isLast: boolean) => {
    if (head.text === undefined) return
    const text = { ...head.text, is_last: isLast, held_bytes: Buffer.byteLength(held) }
    const whole = held + piece
    calls.push(
      ...(await callThrough(runner, 'OnText', { head: { ...head, text }, body: toBytes(whole) }, results)),
    )
    const { answer } = calls[calls.length - 1]
    held = answer?.held ?? ''
    const passed = answer?.text ?? whole
    pieces.push(isLast ? passed + held : passed)
  }
  for (const piece of incoming) await offer(piece, false)
  await offer('', true)
  return { calls, pieces }
}

/** One call per event and one for the end; the event of a failed call is unchanged. */
async function runStream(
  runner: ModuleRunner,
  incoming: readonly CaseEvent[],
  head: GuestInput,
  results: FetchResults,
): Promise<{ calls: Call[]; events: Observed['events'] }> {
  const calls: Call[] = []
  const events: { name: string | null; data: string }[] = []
  let state = ''
  const offer = async (index: number, name: string | null, data: string | null) => {
    const event = { index, name, is_end: data === null }
    const about = { head: { ...head, event, state }, body: toBytes(data ?? '') }
    const made = await callThrough(runner, 'OnStreamEvent', about, results)
    calls.push(...made)
    for (const { answer } of made) state = answer?.state ?? state
    events.push(...(made[made.length - 1].answer?.events ?? (data === null ? [] : [{ name, data }])))
  }
  let index = 0
  let hasEnded = false
  for (const { name = null, data } of incoming) {
    const text = Buffer.from(toBytes(data)).toString()
    if (text === STREAM_END) {
      await offer(index, null, null)
      hasEnded = true
      events.push({ name, data: text })
    } else await offer(index++, name, text)
  }
  if (!hasEnded) await offer(index, null, null)
  return { calls, events }
}

function observe(
  calls: readonly Call[],
  events: Observed['events'],
  pieces: Observed['pieces'],
  metrics: ReadonlyMap<string, number>,
): Observed {
  const { action, status, headers, headers_set, headers_add, headers_remove, body, prompt, choice } =
    calls[calls.length - 1].answer ?? CONTINUE
  return {
    action,
    status,
    headers,
    headers_set,
    headers_add,
    headers_remove,
    body: body?.toString('utf8') ?? null,
    events,
    pieces,
    prompt,
    choice,
    fetches: calls.flatMap(({ answer }) => (answer?.fetch == null ? [] : [shownFetch(answer.fetch)])),
    logs: calls.flatMap(({ result }) => result.logs.map(({ text }) => text)),
    metrics: Object.fromEntries(metrics),
    failure: calls.find(({ failure }) => failure !== null)?.failure ?? null,
  }
}

function shownFetch({ url, method, headers, body }: RequestedFetch): Observed['fetches'][number] {
  return { url, method, headers, body: body.toString('utf8') }
}

/** Paths of the case files of a folder, by name, or of one file. */
export async function caseFiles(place: string): Promise<string[]> {
  if (!(await stat(place)).isDirectory()) return [place]
  const names = (await readdir(place)).filter((name) => name.endsWith('.json'))
  return names.sort().map((name) => join(place, name))
}

/** Reads the case files of a folder, by name, or one file. @throws Error naming the file and the invalid member */
export async function readCases(place: string): Promise<{ file: string; moduleCase: ModuleCase }[]> {
  return Promise.all(
    (await caseFiles(place)).map(async (file) => {
      const text = await readFile(file, 'utf8')
      try {
        return { file, moduleCase: readCase(text) }
      } catch (cause) {
        throw new Error(`${file}: ${(cause as Error).message}`, { cause })
      }
    }),
  )
}
