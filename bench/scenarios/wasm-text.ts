/** The cost of a module that replaces every text of 64 streams, beside one that replaces every event. */
import { compareCheckouts } from '../support/compare-checkouts.ts'
import type { Figure, RunOptions, Scenario } from '../support/figure.ts'
import { compileGuests, withGuests } from '../support/guests.ts'
import { measureRounds, runLoad } from '../support/load.ts'
import { startBareGateway, startWasmGateway, type WasmGateway } from '../support/wasm-gateway.ts'

const STREAMS = 64
const INLINE = { instance: 'fresh', placement: 'inline' } as const
/** Text is written again from the events of a generation, so that only the texts are compared. */
const LOAD = { streams: STREAMS, exact: 0 }

function run(options: RunOptions): Promise<Figure[]> {
  return withGuests(['stream', 'text'], options.progress, async (guests, worker) => {
    const open = (modules: Parameters<typeof startWasmGateway>[0]['modules']) =>
      startWasmGateway({ workerPort: worker.port, guests, modules })
    const bare = await startBareGateway(worker.port)
    const event = await open([{ guest: 'stream', point: 'OnStreamEvent', ...INLINE }])
    const text = await open([{ guest: 'text', point: 'OnText', ...INLINE }])
    const subjects = [
      { name: 'bare', gateway: bare },
      { name: 'event', gateway: event },
      { name: 'text', gateway: text },
    ] as const
    try {
      for (const { gateway } of subjects) await runLoad('sse-load.ts', gateway, { ...LOAD, seconds: 2 })
      const results = await measureRounds(subjects, options, ({ gateway }) =>
        runLoad('sse-load.ts', gateway, { ...LOAD, seconds: options.seconds }),
      )
      const perEvent = (name: string) =>
        results(name).map(({ cpuMicros, report }) => cpuMicros / report.events)
      const [ofBare, ofEvent, ofText] = [perEvent('bare'), perEvent('event'), perEvent('text')]
      return [
        { name: 'CPU per event, bare', unit: 'µs', values: ofBare },
        { name: 'CPU per event, event module', unit: 'µs', values: ofEvent },
        { name: 'CPU per event, text module', unit: 'µs', values: ofText },
        {
          name: 'text module / event module',
          unit: '',
          values: ofText.map((value, round) => value / ofEvent[round]),
          target: 2,
          note: `inline, ${STREAMS} concurrent streams; the text of every stream was compared with the worker's`,
        },
        { name: 'failed module calls', unit: '', values: [await failedOf(text)], target: 0 },
      ]
    } finally {
      for (const { gateway } of subjects) await gateway.stop()
    }
  })
}

async function failedOf(gateway: WasmGateway): Promise<number> {
  const { succeeded, failed } = await gateway.calls()
  if (succeeded === 0) throw new Error('the module was not called')
  return failed
}

export const wasmText: Scenario = {
  name: 'wasm-text',
  question: 'what does a module cost that replaces every text of a stream, in any format?',
  run,
  compare: (options) =>
    compareCheckouts(
      {
        start: (root, { port: workerPort }) => {
          const modules = [{ guest: 'text', point: 'OnText', ...INLINE }] as const
          return startWasmGateway({ root, workerPort, guests: compileGuests(['text']), modules })
        },
        client: 'sse-load.ts',
        load: LOAD,
      },
      options,
    ),
}
