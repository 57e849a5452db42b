/** A module that replaces every event of 64 streams: what does it add to each event? */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { type LoadResult, rotate, runLoad } from '../support/load.ts'
import { startBareGateway, startWasmGateway } from '../support/wasm-gateway.ts'
import { withGuests } from '../support/wasm-relay.ts'

const STREAMS = 64

function run(options: RunOptions): Promise<Figure[]> {
  return withGuests(['stream'], options.progress, async (guests, worker) => {
    const modules = [{ guest: 'stream', point: 'OnStreamEvent', instance: 'reuse' }] as const
    const bare = await startBareGateway(worker.port)
    try {
      const changed = await startWasmGateway({ workerPort: worker.port, guests, modules })
      try {
        const results = { bare: [] as LoadResult[], changed: [] as LoadResult[] }
        const subjects = [
          { label: 'bare', gateway: bare },
          { label: 'changed', gateway: changed },
        ] as const
        for (const { gateway } of subjects) {
          await runLoad('sse-load.ts', gateway, { streams: STREAMS, seconds: 2 })
        }
        for (let round = 0; round < options.rounds; round++) {
          for (const { label, gateway } of rotate(subjects, round)) {
            options.progress(`round ${round + 1}/${options.rounds}: ${label}`)
            const load = { streams: STREAMS, seconds: options.seconds }
            results[label].push(await runLoad('sse-load.ts', gateway, load))
          }
        }
        return streamFigures(results, await changed.calls())
      } finally {
        await changed.stop()
      }
    } finally {
      await bare.stop()
    }
  })
}

function streamFigures(
  results: Readonly<Record<'bare' | 'changed', readonly LoadResult[]>>,
  calls: { readonly succeeded: number; readonly failed: number },
): Figure[] {
  if (calls.succeeded === 0) throw new Error('no module was called')
  const perEvent = (label: 'bare' | 'changed') =>
    results[label].map((result) => result.cpuMicros / result.report.events)
  const bare = perEvent('bare')
  const added = (key: string) =>
    results.changed.map((result, round) => (result.report[key] - results.bare[round].report[key]) / 1_000)
  return [
    { name: 'CPU per event, bare', unit: 'µs', values: bare },
    { name: 'CPU per event, changed', unit: 'µs', values: perEvent('changed') },
    {
      name: 'added CPU per event',
      unit: 'µs',
      values: perEvent('changed').map((value, round) => value - bare[round]),
      target: 60,
      note: `${STREAMS} streams at a time; every stream was compared with what the worker sent, by hash`,
    },
    { name: 'added first event p50', unit: 'ms', values: added('firstEventP50Micros') },
    { name: 'added gap between events p99', unit: 'ms', values: added('gapP99Micros') },
    { name: 'failed module calls', unit: '', values: [calls.failed], target: 0 },
  ]
}

export const wasmStreamEvent: Scenario = {
  name: 'wasm-stream-event',
  question: 'what does a module cost that replaces each event of a stream?',
  run,
}
