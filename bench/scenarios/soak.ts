/** Memory under a mix of all kinds of requests: how it grows, and what holds it. */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { configurations } from '../support/gateway-config.ts'
import { startScript, temporaryDirectory, wait } from '../support/process.ts'
import { openRuntimeReports, type ThreadReport } from '../support/runtime-reports.ts'
import { startWorker } from '../support/subject.ts'

const THREADS = 2
const LANES = 16
/** A minute, or less in a short run. */
const SAMPLES = 60
const MIN_SAMPLE_MS = 1_000

/** Megabytes by what holds them. */
type Sample = ReadonlyMap<string, number>

async function run({ seconds, progress }: RunOptions): Promise<Figure[]> {
  const sampleMs = Math.min(60_000, Math.max(MIN_SAMPLE_MS, (seconds * 1_000) / SAMPLES))
  const worker = await startWorker()
  const tools = startScript('tool-server.ts')
  const { port } = await tools.report()
  const reports = openRuntimeReports(sampleMs)
  const stored = configurations.storedResponses(temporaryDirectory())
  const gateway = await startGateway({
    workerPorts: worker.ports,
    kernel: { threads: THREADS },
    plugins: {
      ...stored.plugins,
      ...configurations.messages().plugins,
      conversations: {},
      mcp: { servers: [{ label: 'tools', url: `http://127.0.0.1:${port}/mcp` }] },
    },
    runtime: reports,
  })
  const client = startScript('soak-load.ts', { port: gateway.port, seconds, lanes: LANES })
  try {
    const samples: Sample[] = []
    let isOver = false
    const counts = client.report().finally(() => {
      isOver = true
    })
    // Reported where it is awaited.
    counts.catch(() => undefined)
    while (!isOver) {
      await wait(sampleMs)
      const sample = toSample(reports.take())
      if (sample === null) continue
      samples.push(sample)
      progress([...sample].map(([name, megabytes]) => `${name} ${megabytes.toFixed(1)}`).join(', '))
    }
    return [
      ...Object.entries(await counts).map(([kind, count]) => ({
        name: kind,
        unit: '',
        values: [Number(count)],
      })),
      ...toFigures(samples, sampleMs),
    ]
  } finally {
    await client.stop()
    await gateway.stop()
    await tools.stop()
    await worker.child.stop()
  }
}

/** Null unless every thread has reported since the last sample. */
function toSample(reports: readonly ThreadReport[]): Sample | null {
  const threads = [...new Map(reports.map((report) => [report.thread, report])).values()]
  if (threads.length <= THREADS) return null
  const sample = new Map([['resident', threads[threads.length - 1].rss / 1e6]])
  let rest = threads[threads.length - 1].rss
  for (const { thread, spaces, external, arrayBuffers } of threads.sort((a, b) => a.thread - b.thread)) {
    const physical = spaces.reduce((sum, [, , size]) => sum + size, 0)
    // The rest is the binary, stacks, the store, buffers, and free memory of the allocator.
    rest -= physical
    const add = (name: string, bytes: number) => sample.set(`thread ${thread} ${name}`, bytes / 1e6)
    add('heap', physical)
    for (const [name, used] of spaces) if (used > 0) add(`${name.replace('_space', '')} in use`, used)
    add('external', external)
    add('array buffers', arrayBuffers)
  }
  return sample.set('outside of heaps', rest / 1e6)
}

function toFigures(samples: readonly Sample[], sampleMs: number): Figure[] {
  const half = samples.slice(samples.length >> 1)
  return [...(samples.at(-1)?.keys() ?? [])].map((name) => {
    const valuesOf = (some: readonly Sample[]) => some.map((sample) => sample.get(name) ?? 0)
    const slope = slopeOf(valuesOf(half)) * (3_600_000 / sampleMs)
    return {
      name,
      unit: 'MB',
      values: valuesOf(samples),
      note: `${valuesOf(samples.slice(-1))[0].toFixed(1)} at the end, ${slope.toFixed(1)} per hour over the last half`,
    }
  })
}

/** Of the line with the least squares, per step. */
function slopeOf(values: readonly number[]): number {
  const middle = (values.length - 1) / 2
  const square = values.reduce((sum, _, at) => sum + (at - middle) ** 2, 0)
  return values.reduce((sum, value, at) => sum + (at - middle) * value, 0) / (square || 1)
}

export const soak: Scenario = {
  name: 'soak',
  question:
    'does memory grow under a mix of all kinds of requests for the time of --seconds, and what holds it?',
  run,
}
