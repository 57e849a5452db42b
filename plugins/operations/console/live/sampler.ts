/**
 * Samples the metrics for the overview, on control: one sampler for all pages. Keeps 15 minutes of points of this gateway and of
 * the mesh, and publishes each new one to the threads that have a page open.
 */
import {
  type Host,
  type Logger,
  MESH_INTAKE,
  type MeshChannel,
  type MetricsSnapshot,
  type Topic,
} from '#kernel'
import type { Point } from './point.ts'
import {
  difference,
  FAMILIES,
  join,
  readTotals,
  type Sample,
  sampleValidator,
  type Totals,
  toPoint,
} from './sample.ts'

export const INTERVAL_MS = 5_000
/** While a page is open. */
const WATCHED_MS = 1_000
const KEPT_POINTS = 180
/** Samples of other gateways are older than this if the gateway is away. */
const FRESH_MS = 3 * INTERVAL_MS

/** Both are also keys of the topic. */
export type Scope = 'gateway' | 'mesh'
export const SCOPES: readonly Scope[] = ['gateway', 'mesh']

interface Workers {
  readonly inFlight: number
  readonly ready: number
  readonly total: number
}

interface SamplerParts {
  readonly read: (families: readonly string[]) => Promise<MetricsSnapshot>
  readonly isServing: (path: string) => boolean
  readonly workers: () => Workers
  readonly topic: Pick<Topic<Point>, 'publish'>
  /** Null without a mesh. */
  readonly channel: MeshChannel | null
  readonly log: Pick<Logger, 'debug'>
}

export class Sampler {
  readonly #parts: SamplerParts
  readonly #history: Readonly<Record<Scope, Point[]>> = { gateway: [], mesh: [] }
  readonly #others = new Map<string, { readonly sample: Sample; readonly atMs: number }>()
  /** Since the last point of the history. */
  #recent: Sample[] = []
  #last: { readonly totals: Totals; readonly atMs: number } | null = null
  #timer: NodeJS.Timeout | undefined
  #isWatched = false
  #isStopped = false

  constructor(parts: SamplerParts) {
    this.#parts = parts
    parts.channel?.onMessage((message, from) => this.#receive(message, from))
  }

  start(): void {
    this.#schedule(0)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  /** Points of the last 15 minutes, oldest first; a page is open from now on. */
  watch(scope: Scope): readonly Point[] {
    if (!this.#isWatched) {
      this.#isWatched = true
      this.#schedule(WATCHED_MS)
    }
    return this.#history[scope]
  }

  #schedule(afterMs: number): void {
    clearTimeout(this.#timer)
    if (this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.#sample()
        .catch((err: unknown) => this.#parts.log.debug({ err }, 'console sample failed'))
        .finally(() => this.#schedule(this.#isWatched ? WATCHED_MS : INTERVAL_MS))
    }, afterMs)
    this.#timer.unref()
  }

  async #sample(): Promise<void> {
    const { read, isServing, workers, topic, channel } = this.#parts
    const totals = readTotals(await read(FAMILIES), isServing)
    const before = this.#last
    const nowMs = performance.now()
    this.#last = { totals, atMs: nowMs }
    if (before === null || nowMs <= before.atMs) return
    const sample = difference(before.totals, totals, workers(), nowMs - before.atMs)
    channel?.send(Buffer.from(JSON.stringify(sample)))
    this.#recent.push(sample)
    const points = this.#pointsOf(sample, totals)
    const watched = SCOPES.map((scope) => topic.publish(scope, points[scope]))
    this.#isWatched = watched.includes(true)
    const joined = join(this.#recent)
    // Timers are late rather than early.
    if (joined.intervalMs < INTERVAL_MS - WATCHED_MS / 2) return
    this.#recent = []
    const kept = this.#pointsOf(joined, totals)
    for (const scope of SCOPES) {
      this.#history[scope].push(kept[scope])
      if (this.#history[scope].length > KEPT_POINTS) this.#history[scope].shift()
    }
  }

  #pointsOf(own: Sample, { histograms }: Totals): Record<Scope, Point> {
    const oldest = performance.now() - FRESH_MS
    const others: Sample[] = []
    for (const [name, { sample, atMs }] of this.#others)
      if (atMs < oldest) this.#others.delete(name)
      else others.push(sample)
    const bounds = {
      ttft: histograms.ttft.bounds,
      itl: histograms.itl.bounds,
      duration: histograms.duration.bounds,
      added: histograms.added.bounds,
    }
    const atMs = Date.now()
    return { gateway: toPoint(atMs, [own], bounds), mesh: toPoint(atMs, [own, ...others], bounds) }
  }

  #receive(message: Buffer, from: string): void {
    // Any client of the engine can send under any name.
    if (!this.#others.has(from) && this.#others.size >= MESH_INTAKE.members) return
    try {
      const sample = sampleValidator.parse(JSON.parse(message.toString()))
      this.#others.set(from, { sample, atMs: performance.now() })
    } catch (err) {
      this.#parts.log.debug({ err, from }, 'console sample of another gateway ignored')
    }
  }
}

/** Workers from the counters that all threads share. */
export function countWorkers({ balance }: Pick<Host, 'balance'>): Workers {
  let [inFlight, ready] = [0, 0]
  for (const { slot } of balance.workers) {
    inFlight += balance.inFlight(slot)
    if (balance.status(slot) === 'ready') ready++
  }
  return { inFlight, ready, total: balance.workers.length }
}
