/** Runs the cases of a suite against a built gateway, checks invariants of each case and of the run, and reduces failing inputs. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Worker } from 'node:worker_threads'
import {
  type BuiltGateway,
  type BuiltGatewayOptions,
  makeFolder,
  startBuiltGateway,
  until,
} from '../support/built-command.ts'
import { type Draw, seeded } from './mutate.ts'

export interface FuzzCase {
  readonly label: string
  /** Each is one write, frame, message or file. */
  readonly parts: readonly Buffer[]
}

export interface Outcome {
  /** Counted in the report. */
  readonly ending: string
  readonly fault?: string
}

export interface Target {
  readonly gateway: BuiltGateway
  make(draw: Draw, index: number): FuzzCase
  run(input: FuzzCase, lane: number): Promise<Outcome>
  close(): Promise<void> | void
}

export interface Suite {
  readonly lanes: number
  /** Cases of a short run. */
  readonly count: number
  start(): Promise<Target>
}

export interface RunOptions {
  readonly count: number
  readonly seconds: number
  readonly seed: number
  /** Runs this case alone. */
  readonly only?: number
  readonly print?: (line: string) => void
}

export interface Finding {
  readonly index: number
  readonly label: string
  readonly fault: string
  readonly input: readonly string[]
}

export interface FuzzReport {
  readonly count: number
  readonly seconds: number
  readonly endings: Record<string, number>
  readonly livenessP99Ms: number
  readonly machineP99Ms: number
  /** Resident memory: after warm-up, maxima of the first three quarters and of the last one, and at the end. */
  readonly rssMiB: readonly [number, number, number, number]
  /** Objects and buffers of all threads: after warm-up, and at the end. */
  readonly heldMiB: readonly [number, number]
  readonly findings: readonly Finding[]
  readonly problems: readonly string[]
}

const MAX_LIVENESS_MS = 50
/** Growth of the held memory over the run, and of the resident memory in its last quarter. */
const MAX_GROWTH_MIB = 64
const WARM_UP = 500
const MAX_FINDINGS = 8
const PROGRESS_MS = 15_000
/** A case that has ended can still cause an error this much later. */
const SUSPECT_MS = 1_000

export function startFuzzed(options: BuiltGatewayOptions): Promise<BuiltGateway> {
  return startBuiltGateway({
    ...options,
    plugins: { storage: { dir: makeFolder() }, ...options.plugins },
    kernel: {
      threads: 1,
      retry: { maxAttempts: 1 },
      breaker: { enabled: false },
      upstream: { headMs: 5_000, firstTokenMs: 5_000, idleMs: 5_000, connectMs: 2_000 },
      log: { level: 'error', access: false },
      ...options.kernel,
    },
  })
}

export async function runSuite(suite: Suite, options: RunOptions): Promise<FuzzReport> {
  const { count, seconds, seed, print = () => {} } = options
  let target = await suite.start()
  const startedAtMs = performance.now()
  const caseOf = (index: number) => target.make(seeded(Math.imul(seed, 0x9e3779b1) ^ index), index)
  const endings: Record<string, number> = {}
  /** The first case of each fault. */
  const failed = new Map<string, { index: number; fault: string }>()
  const recent: { index: number; endedAtMs: number }[] = []
  const isOver = () => performance.now() - startedAtMs > seconds * 1_000
  let next = options.only ?? 0
  const end = options.only === undefined ? count : next + 1
  let done = 0
  let lines = target.gateway.command.lines.length
  let suspects: number[] | null = null
  const rss: [number, number, number, number] = [0, 0, 0, 0]
  let heldBefore = 0
  /** Number of cases before latency and memory count: the first calls compile and load code. */
  const warmUp = Math.min(Math.floor(count / 10), WARM_UP)
  let probe: Worker | null = null
  const startProbe = () => {
    rss[0] = rssMiB(target)
    void heldMiB(target).then((held) => {
      heldBefore = held
    })
    probe = new Worker(new URL('./liveness-probe.ts', import.meta.url), { workerData: target.gateway.port })
  }
  const progress = setInterval(
    () => print(`${done} cases, ${failed.size} faults, ${rssMiB(target)} MiB`),
    PROGRESS_MS,
  )
  const lane = async (number: number) => {
    while (next < end && !isOver() && suspects === null && failed.size < MAX_FINDINGS) {
      const entry = { index: next++, endedAtMs: Number.POSITIVE_INFINITY }
      recent.push(entry)
      const input = caseOf(entry.index)
      const { ending, fault } = await target.run(input, number)
      entry.endedAtMs = performance.now()
      while (recent[0] !== undefined && recent[0].endedAtMs < entry.endedAtMs - SUSPECT_MS) recent.shift()
      endings[ending] = (endings[ending] ?? 0) + 1
      done++
      if (fault !== undefined) {
        const key = `${input.label.slice(0, 40)} ${kindOf(fault)}`
        if (!failed.has(key)) failed.set(key, { index: entry.index, fault })
      }
      if (target.gateway.command.hasEnded || target.gateway.command.lines.length > lines)
        suspects ??= recent.map(({ index }) => index)
      if (done === warmUp) startProbe()
      const part = done < count * 0.75 ? 1 : 2
      if (done % 256 === 0) rss[part] = Math.max(rss[part], rssMiB(target))
    }
  }
  await Promise.all(Array.from({ length: suite.lanes }, (_, number) => lane(number)))
  clearInterval(progress)
  const latency = await endProbe(probe)
  const took = (performance.now() - startedAtMs) / 1_000
  const problems: string[] = []
  await pause(200)
  const { command } = target.gateway
  if (command.hasEnded) problems.push('the process ended')
  for (const line of command.lines.slice(lines, lines + 5)) problems.push(`logged: ${line.slice(0, 2_000)}`)
  if (!command.hasEnded && (await target.gateway.get('/liveness')).status !== 200)
    problems.push('/liveness failed')
  if (latency.livenessP99Ms > MAX_LIVENESS_MS + latency.machineP99Ms)
    problems.push(`/liveness p99 ${latency.livenessP99Ms} ms`)
  let held = heldBefore
  if (heldBefore > 0 && !command.hasEnded) {
    const isReleased = async () => {
      held = await heldMiB(target)
      return held <= heldBefore + MAX_GROWTH_MIB
    }
    await until(isReleased).catch(() => problems.push('memory was not released'))
    // The allocator and the heaps keep some memory of the busiest time; what grows on is a leak.
    if (rss[2] > rss[1] + MAX_GROWTH_MIB && rss[1] > 0) problems.push('resident memory still grew at the end')
    rss[3] = rssMiB(target)
  }

  for (const problem of problems) print(problem)

  const findings: Finding[] = []
  /** Runs one input alone; an error in the log counts as a fault. */
  const faultOf = async (input: FuzzCase): Promise<string | undefined> => {
    if (target.gateway.command.hasEnded) {
      await target.close()
      target = await suite.start()
    }
    lines = target.gateway.command.lines.length
    const { fault } = await target.run(input, 0)
    await pause(50)
    return (
      fault ?? target.gateway.command.lines[lines] ?? (target.gateway.command.hasEnded ? 'ended' : undefined)
    )
  }
  const candidates = [...failed.values(), ...(suspects ?? []).map((index) => ({ index, fault: undefined }))]
  for (const { index, fault: first } of candidates) {
    if (findings.length >= MAX_FINDINGS) break
    print(`repeating case ${index}${first === undefined ? '' : `: ${first.slice(0, 200)}`}`)
    const input = caseOf(index)
    const fault = await faultOf(input)
    if (first === undefined && fault === undefined) continue
    const small =
      fault === undefined
        ? input
        : await reduce(input, async (smaller) => kindOf(await faultOf(smaller)) === kindOf(fault))
    findings.push({
      index,
      label: input.label,
      fault: (fault ?? `once: ${first}`).slice(0, 2_000),
      input: small.parts.map(shown),
    })
  }
  await target.close()
  await target.gateway.command.stop().catch((error: unknown) => problems.push(String(error)))
  return {
    count: done,
    seconds: Math.round(took),
    endings,
    ...latency,
    rssMiB: rss,
    heldMiB: [heldBefore, held],
    findings,
    problems,
  }
}

async function endProbe(probe: Worker | null): Promise<{ livenessP99Ms: number; machineP99Ms: number }> {
  if (probe === null) return { livenessP99Ms: 0, machineP99Ms: 0 }
  probe.postMessage('end')
  const [latency] = await once(probe, 'message')
  return latency
}

const MAX_REDUCTIONS = 80
/** Inputs without a response are slow. */
const MAX_REDUCTION_MS = 60_000

/** Removes parts, then ranges of bytes, while the input still fails. */
async function reduce(input: FuzzCase, fails: (input: FuzzCase) => Promise<boolean>): Promise<FuzzCase> {
  let { parts } = input
  let left = MAX_REDUCTIONS
  const endsAtMs = performance.now() + MAX_REDUCTION_MS
  const tryParts = async (smaller: readonly Buffer[]) => {
    if (left-- <= 0 || performance.now() > endsAtMs || !(await fails({ ...input, parts: smaller })))
      return false
    parts = smaller
    return true
  }
  for (let at = parts.length - 1; at >= 0 && parts.length > 1; at--) await tryParts(parts.toSpliced(at, 1))
  for (let nth = 0; nth < parts.length; nth++)
    for (let size = parts[nth].length >> 1; size >= 1 && left > 0; size >>= 1)
      for (let at = 0; at + size <= parts[nth].length; ) {
        const part = Buffer.concat([parts[nth].subarray(0, at), parts[nth].subarray(at + size)])
        if (!(await tryParts(parts.with(nth, part)))) at += size
        if (left <= 0) break
      }
  return { ...input, parts }
}

function kindOf(fault = ''): string {
  return fault.slice(0, 60).replace(/\d+/g, '0')
}

function shown(part: Buffer): string {
  const text = part.toString()
  return Buffer.from(text).equals(part)
    ? text.slice(0, 1_500)
    : `base64:${part.subarray(0, 1_000).toString('base64')}`
}

function rssMiB({ gateway }: Target): number {
  if (gateway.command.hasEnded) return 0
  const [, kib] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.command.pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1_024)
}

async function heldMiB({ gateway }: Target): Promise<number> {
  const text = await (await fetch(gateway.metricsUrl)).text()
  const held = text.matchAll(/^weir_thread_memory_bytes\{.*kind="(?:heap_used|external)".*\} (\S+)$/gm)
  return Math.round([...held].reduce((sum, [, bytes]) => sum + Number(bytes), 0) / 1_048_576)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
