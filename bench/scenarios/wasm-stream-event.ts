/** A module that replaces every event of 64 streams: what does it add to each event? */
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { type LoadResult, rotate, runLoad } from '../support/load.ts'
import {
  type ModuleUse,
  startBareGateway,
  startWasmGateway,
  type WasmGateway,
} from '../support/wasm-gateway.ts'
import { withGuests } from '../support/wasm-relay.ts'

const STREAMS = 64
type Label = 'bare' | 'changed' | 'inline'

function run(options: RunOptions): Promise<Figure[]> {
  return withGuests(['stream'], options.progress, async (guests, worker) => {
    const use = { guest: 'stream', point: 'OnStreamEvent' } as const
    const gatewayWith = (modules: readonly ModuleUse[]) =>
      startWasmGateway({ workerPort: worker.port, guests, modules })
    const bare = await startBareGateway(worker.port)
    const running: WasmGateway[] = []
    try {
      const changed = await gatewayWith([{ ...use, instance: 'reuse' }])
      running.push(changed)
      const inline = await gatewayWith([{ ...use, instance: 'fresh', placement: 'inline' }])
      running.push(inline)
      const results = { bare: [] as LoadResult[], changed: [] as LoadResult[], inline: [] as LoadResult[] }
      const subjects = [
        { label: 'bare', gateway: bare },
        { label: 'changed', gateway: changed },
        { label: 'inline', gateway: inline },
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
      const calls = [await changed.calls(), await inline.calls()]
      return streamFigures(results, calls)
    } finally {
      for (const gateway of [bare, ...running]) await gateway.stop()
    }
  })
}

function streamFigures(
  results: Readonly<Record<Label, readonly LoadResult[]>>,
  calls: readonly { readonly succeeded: number; readonly failed: number }[],
): Figure[] {
  if (calls.some(({ succeeded }) => succeeded === 0)) throw new Error('no module was called')
  const perEvent = (label: Label) => results[label].map((result) => result.cpuMicros / result.report.events)
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
    { name: 'CPU per event, inline', unit: 'µs', values: perEvent('inline') },
    {
      name: 'added CPU per event, inline',
      unit: 'µs',
      values: perEvent('inline').map((value, round) => value - bare[round]),
      target: 8,
      note: 'on the data thread, put back after each event',
    },
    { name: 'added first event p50', unit: 'ms', values: added('firstEventP50Micros') },
    { name: 'added gap between events p99', unit: 'ms', values: added('gapP99Micros') },
    { name: 'failed module calls', unit: '', values: [calls[0].failed + calls[1].failed], target: 0 },
  ]
}

export const wasmStreamEvent: Scenario = {
  name: 'wasm-stream-event',
  question: 'what does a module cost that replaces each event of a stream?',
  run,
}
