/** Non-streamed responses: CPU time compared with a relayed chat, and the rate of synced writes. */
import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { compareCheckouts } from '../support/compare-checkouts.ts'
import { type ComparableScenario, type Figure, median, type RunOptions, ratios } from '../support/figure.ts'
import { configurationsOf, startGateway } from '../support/gateway.ts'
import { clientBottleneck, cpuPerRequest, measureRounds, runLoad, warmUp } from '../support/load.ts'
import { startScript, temporaryDirectory } from '../support/process.ts'
import { type Subject, startWorker } from '../support/subject.ts'

const CONNECTIONS = 256
/** Approximate size of the records of one turn in the log. */
const TURN_BYTES = 2_000
const DISK_MS = 1_000

/** `responses` is the option of the load client. */
const VARIANTS = [
  { name: 'relay', responses: 0 },
  { name: 'stored', responses: 1 },
  { name: 'not stored', responses: 2 },
]

/** Rate of sequential appends that are each synced. Blocks for `DISK_MS`. */
function syncsPerSecond(dir: string): number {
  const path = join(dir, 'raw-disk')
  const file = openSync(path, 'w')
  const part = Buffer.alloc(TURN_BYTES, 0x61)
  const startedAtMs = performance.now()
  let count = 0
  try {
    for (; performance.now() - startedAtMs < DISK_MS; count++) {
      writeSync(file, part)
      fdatasyncSync(file)
    }
  } finally {
    closeSync(file)
    rmSync(path)
  }
  return (count / (performance.now() - startedAtMs)) * 1_000
}

/** Rate of synced turns that the store reaches without a gateway. */
async function storeAlone(dir: string): Promise<number> {
  const script = startScript('store-alone.ts', { dir, writers: CONNECTIONS })
  const { perSecond } = await script.report()
  await script.stop()
  return Number(perSecond)
}

async function startStored(dir: string, root: string | null, workerPorts: readonly number[]) {
  const { storedResponses } = await configurationsOf(root)
  return startGateway({ root, workerPorts, ...storedResponses(dir) })
}

async function run(options: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const dir = temporaryDirectory()
  const subjects: Subject[] = []
  try {
    const subject = await startStored(dir, null, worker.ports)
    subjects.push(subject)
    const load = (responses: number, seconds: number) =>
      runLoad('json-load.ts', subject, { connections: CONNECTIONS, bytes: 250, responses, seconds })
    for (const { name, responses } of VARIANTS) {
      options.progress(`warm-up: ${name}`)
      await warmUp((seconds) => load(responses, seconds))
    }
    const disk: number[] = []
    const alone: number[] = []
    const results = await measureRounds(VARIANTS, options, async ({ name, responses }) => {
      if (name === 'stored') {
        disk.push(syncsPerSecond(dir))
        alone.push(await storeAlone(dir))
      }
      return load(responses, options.seconds)
    })
    const relay = cpuPerRequest(results('relay'))
    const stored = cpuPerRequest(results('stored'))
    const notStored = cpuPerRequest(results('not stored'))
    const withheld = clientBottleneck(results('stored'))
    const perSecond = results('stored').map(({ report }) => report.perSecond)
    const cores = results('stored').map(({ report }, round) => (stored[round] * report.perSecond) / 1e6)
    const p99Ms = median(results('stored').map(({ report }) => report.p99Micros / 1_000))
    return [
      { name: 'CPU per chat, relayed', unit: 'µs', values: relay },
      { name: 'CPU per response, stored', unit: 'µs', values: stored },
      { name: 'CPU per response, not stored', unit: 'µs', values: notStored },
      { name: 'CPU, stored / relayed', unit: '×', values: ratios(stored, relay), target: 3 },
      { name: 'CPU, not stored / relayed', unit: '×', values: ratios(notStored, relay), target: 2.5 },
      {
        name: 'responses that are on disk before they are sent',
        unit: '1/s',
        values: withheld === undefined ? perSecond : [],
        atLeast: 5_000,
        withheld,
        note: `${CONNECTIONS} connections; p99 ${p99Ms.toFixed(1)} ms`,
      },
      {
        name: 'synced appends of the disk alone',
        unit: '1/s',
        values: disk,
        note: `sequential appends of ${TURN_BYTES} bytes`,
      },
      {
        name: 'synced turns of the store alone',
        unit: '1/s',
        values: alone,
        note: `${CONNECTIONS} writers of the same records, without a gateway: the limit of LevelDB and this disk`,
      },
      {
        name: 'responses on disk / synced appends of the disk',
        unit: '×',
        values: withheld === undefined ? ratios(perSecond, disk) : [],
        atLeast: 2,
        withheld,
      },
      {
        name: 'cores that the gateway used',
        unit: '',
        values: cores,
        note: 'below one, the machine was busy and the disk was not the limit',
      },
    ]
  } finally {
    for (const subject of subjects) await subject.stop()
    await worker.child.stop()
  }
}

export const responsesJson: ComparableScenario = {
  name: 'responses-json',
  question: 'what does a response cost, stored and not stored, compared with a relayed chat?',
  run,
  compare: (options) =>
    compareCheckouts(
      {
        start: (root, { ports }) => startStored(temporaryDirectory(), root, ports),
        client: 'json-load.ts',
        load: { connections: CONNECTIONS, bytes: 250, responses: 1 },
      },
      options,
    ),
}
