/** Responses, answered whole: what storing one costs beside a relayed chat, and how many a second are on disk. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Figure, median, type RunOptions, type Scenario } from '../support/figure.ts'
import { startGateway } from '../support/gateway.ts'
import { clientBottleneck, type LoadResult, rotate, runLoad } from '../support/load.ts'
import { startScript } from '../support/process.ts'
import { syncsPerSecond } from '../support/raw-disk.ts'
import { type Subject, startWorker } from '../support/subject.ts'
import { warmUp } from '../support/warm-up.ts'

const CONNECTIONS = 256
/** About what the records of one turn are in the log. */
const TURN_BYTES = 2_000
const DISK_MS = 1_000

interface Way {
  readonly name: 'relay' | 'stored' | 'not stored'
  readonly subject: Subject
  /** As the load client takes it. */
  readonly responses: number
}

/** Turns a second that the store takes from writers in a process of their own. */
async function storeAlone(dir: string): Promise<number> {
  const script = startScript(new URL('../support/store-alone.ts', import.meta.url), [
    '--dir',
    dir,
    '--writers',
    String(CONNECTIONS),
  ])
  const { perSecond } = await script.report()
  await script.stop()
  return Number(perSecond)
}

async function run({ rounds, seconds, progress }: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const dir = mkdtempSync(join(tmpdir(), 'weir-bench-store-'))
  const subjects: Subject[] = []
  try {
    const plugins = { storage: { dir }, history: {}, responses: {} }
    const subject = await startGateway({ workerPorts: worker.ports, plugins })
    subjects.push(subject)
    const ways: Way[] = [
      { name: 'relay', subject, responses: 0 },
      { name: 'stored', subject, responses: 1 },
      { name: 'not stored', subject, responses: 2 },
    ]
    const results: Record<Way['name'], LoadResult[]> = { relay: [], stored: [], 'not stored': [] }
    const load = (way: Way, forSeconds: number) =>
      runLoad('json-load.ts', way.subject, {
        connections: CONNECTIONS,
        bytes: 250,
        responses: way.responses,
        seconds: forSeconds,
      })
    for (const way of ways) {
      progress(`warms up: ${way.name}`)
      await warmUp((forSeconds) => load(way, forSeconds))
    }
    const disk: number[] = []
    const alone: number[] = []
    for (let round = 0; round < rounds; round++) {
      disk.push(syncsPerSecond(dir, TURN_BYTES, DISK_MS))
      alone.push(await storeAlone(dir))
      for (const way of rotate(ways, round)) {
        progress(`round ${round + 1}/${rounds}: ${way.name}`)
        results[way.name].push(await load(way, seconds))
      }
    }
    const perRequest = (name: Way['name']) =>
      results[name].map(({ cpuMicros, report }) => cpuMicros / report.requests)
    const relay = perRequest('relay')
    const stored = perRequest('stored')
    const notStored = perRequest('not stored')
    const ratio = (values: readonly number[]) => values.map((value, round) => value / relay[round])
    const withheld = clientBottleneck(results.stored)
    const perSecond = results.stored.map(({ report }) => report.perSecond)
    const cores = results.stored.map(
      ({ report, cpuMicros }) => (cpuMicros / report.requests) * (report.perSecond / 1e6),
    )
    const p99Ms = median(results.stored.map(({ report }) => report.p99Micros / 1_000))
    return [
      { name: 'CPU per chat, relayed', unit: 'µs', values: relay },
      { name: 'CPU per response, stored', unit: 'µs', values: stored },
      { name: 'CPU per response, not stored', unit: 'µs', values: notStored },
      { name: 'CPU, stored / relayed', unit: '×', values: ratio(stored), target: 4 },
      { name: 'CPU, not stored / relayed', unit: '×', values: ratio(notStored), target: 2.5 },
      {
        name: 'responses on disk before they are told',
        unit: '1/s',
        values: withheld === undefined ? perSecond : [],
        atLeast: 5_000,
        withheld,
        note: `${CONNECTIONS} connections; p99 ${p99Ms.toFixed(1)} ms`,
      },
      {
        name: 'turns alone, each synced, of the disk beside it',
        unit: '1/s',
        values: disk,
        note: `appends of ${TURN_BYTES} bytes, one after another`,
      },
      {
        name: 'turns on disk of the store beside it, without a gateway',
        unit: '1/s',
        values: alone,
        note: `${CONNECTIONS} writers of the same records: the most that LevelDB and this disk give, with a core to themselves`,
      },
      {
        name: 'responses on disk for each sync of the disk',
        unit: '×',
        values: perSecond.map((value, round) => value / disk[round]),
      },
      {
        name: 'cores that the gateway was given meanwhile',
        unit: '',
        values: cores,
        note: 'with less than one, others have the machine, and not the disk is the limit',
      },
    ]
  } finally {
    for (const subject of subjects) await subject.stop()
    await worker.child.stop()
    rmSync(dir, { recursive: true, force: true })
  }
}

export const responsesJson: Scenario = {
  name: 'responses-json',
  question: 'what does a response cost, stored and not, beside a relayed chat?',
  run,
}
