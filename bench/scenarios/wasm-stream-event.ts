/** The cost of a module that replaces every event of 64 streams. */
import { compareCheckouts } from '../support/compare-checkouts.ts'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { compileGuests, withGuests } from '../support/guests.ts'
import { addedMs, measureRounds, type RoundResults, runLoad } from '../support/load.ts'
import {
  type ModuleUse,
  startBareGateway,
  startWasmGateway,
  type WasmGateway,
} from '../support/wasm-gateway.ts'

const STREAMS = 64
const INLINE = {
  guest: 'stream',
  point: 'OnStreamEvent',
  instance: 'fresh',
  placement: 'inline',
} as const

function run(options: RunOptions): Promise<Figure[]> {
  return withGuests(['stream'], options.progress, async (guests, worker) => {
    const gatewayWith = (modules: readonly ModuleUse[]) =>
      startWasmGateway({ workerPort: worker.port, guests, modules })
    const bare = await startBareGateway(worker.port)
    const running: WasmGateway[] = []
    try {
      const changed = await gatewayWith([{ guest: 'stream', point: 'OnStreamEvent', instance: 'reuse' }])
      running.push(changed)
      const inline = await gatewayWith([INLINE])
      running.push(inline)
      const subjects = [
        { name: 'bare', gateway: bare },
        { name: 'changed', gateway: changed },
        { name: 'inline', gateway: inline },
      ] as const
      for (const { gateway } of subjects) {
        await runLoad('sse-load.ts', gateway, { streams: STREAMS, seconds: 2 })
      }
      const results = await measureRounds(subjects, options, ({ gateway }) =>
        runLoad('sse-load.ts', gateway, { streams: STREAMS, seconds: options.seconds }),
      )
      const calls = [await changed.calls(), await inline.calls()]
      return streamFigures(results, calls)
    } finally {
      for (const gateway of [bare, ...running]) await gateway.stop()
    }
  })
}

function streamFigures(
  results: RoundResults,
  calls: readonly { readonly succeeded: number; readonly failed: number }[],
): Figure[] {
  if (calls.some(({ succeeded }) => succeeded === 0)) throw new Error('no module was called')
  const perEvent = (name: string) => results(name).map(({ cpuMicros, report }) => cpuMicros / report.events)
  const bare = perEvent('bare')
  const added = (key: string) => addedMs(results('changed'), results('bare'), key)
  return [
    { name: 'CPU per event, bare', unit: 'µs', values: bare },
    { name: 'CPU per event, changed', unit: 'µs', values: perEvent('changed') },
    {
      name: 'added CPU per event',
      unit: 'µs',
      values: perEvent('changed').map((value, round) => value - bare[round]),
      target: 60,
      note: `${STREAMS} concurrent streams; the hash of every stream was compared with the worker's`,
    },
    { name: 'CPU per event, inline', unit: 'µs', values: perEvent('inline') },
    {
      name: 'added CPU per event, inline',
      unit: 'µs',
      values: perEvent('inline').map((value, round) => value - bare[round]),
      target: 8,
      note: 'on the data thread, with a reset of the instance after each event',
    },
    { name: 'added first event p50', unit: 'ms', values: added('firstEventP50Micros') },
    { name: 'added gap between events p99', unit: 'ms', values: added('gapP99Micros') },
    { name: 'failed module calls', unit: '', values: [calls[0].failed + calls[1].failed], target: 0 },
  ]
}

export const wasmStreamEvent: Scenario = {
  name: 'wasm-stream-event',
  question: 'what does a module cost that replaces every event of a stream?',
  run,
  compare: (options) =>
    compareCheckouts(
      {
        start: (root, { port: workerPort }) =>
          startWasmGateway({ root, workerPort, guests: compileGuests(['stream']), modules: [INLINE] }),
        client: 'sse-load.ts',
        load: { streams: STREAMS },
      },
      options,
    ),
}
