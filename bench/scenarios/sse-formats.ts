/** The chat stream of relay-sse in other formats, compared with the relayed chat stream of the same run. */
import { type Figure, type RunOptions, ratios, type Scenario } from '../support/figure.ts'
import { type GatewayFeatures, startGateway, vendorAt } from '../support/gateway.ts'
import { cpuPerChunk, measureRounds, runLoad } from '../support/load.ts'
import { temporaryDirectory } from '../support/process.ts'
import { type Subject, startWorker } from '../support/subject.ts'

const STREAMS = 32

interface Format {
  readonly name: string
  /** @param workerPort of the simulated worker */
  features(workerPort: number): GatewayFeatures
  /** Options of the load client. */
  readonly load: Readonly<Record<string, number>>
  /** Highest accepted CPU time per chunk, as a multiple of the relay's. */
  readonly target: number
  readonly note: string
}

interface Variant {
  readonly name: string
  readonly subject: Subject
  readonly load: Readonly<Record<string, number>>
}

async function compareWithRelay(format: Format, options: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const variants: Variant[] = []
  try {
    const workerPorts = worker.ports
    variants.push({ name: 'relayed', subject: await startGateway({ workerPorts }), load: { exact: 1 } })
    const subject = await startGateway({ workerPorts, ...format.features(worker.port) })
    variants.push({ name: format.name, subject, load: format.load })
    const run = ({ subject, load }: Variant, seconds: number) =>
      runLoad('sse-load.ts', subject, { streams: STREAMS, seconds, ...load })
    for (const variant of variants) await run(variant, 2)
    const results = await measureRounds(variants, options, (variant) => run(variant, options.seconds))
    const relay = cpuPerChunk(results('relayed'))
    const measured = cpuPerChunk(results(format.name))
    return [
      { name: 'CPU per chunk, chat relayed', unit: 'µs', values: relay },
      { name: `CPU per chunk, ${format.name}`, unit: 'µs', values: measured },
      {
        name: `CPU per chunk, ${format.name} / chat relayed`,
        unit: '×',
        values: ratios(measured, relay),
        target: format.target,
        note: `${STREAMS} concurrent streams; ${format.note}`,
      },
    ]
  } finally {
    for (const { subject } of variants.reverse()) await subject.stop()
    await worker.child.stop()
  }
}

const SAME_TEXT = 'the text of every stream was compared with the worker’s'
const SAME_BYTES = 'the bytes of every stream were compared with the worker’s'

export const generateSse: Scenario = {
  name: 'generate-sse',
  question: 'what does a chunk of a chat cost that is decoded into generation events and encoded again?',
  run: (options) =>
    compareWithRelay(
      {
        name: 'chat normalized',
        features: () => ({ plugins: { chat: { chat: 'normalize' } } }),
        load: { exact: 0 },
        target: 2,
        note: SAME_TEXT,
      },
      options,
    ),
}

export const responsesSse: Scenario = {
  name: 'responses-sse',
  question: 'what does a text delta of a streamed, stored response cost?',
  run: (options) =>
    compareWithRelay(
      {
        name: 'response stored',
        features: () => ({ plugins: { storage: { dir: temporaryDirectory() }, history: {}, responses: {} } }),
        load: { exact: 0, responses: 1 },
        target: 2.5,
        note: SAME_TEXT,
      },
      options,
    ),
}

export const messagesProxySse: Scenario = {
  name: 'messages-proxy-sse',
  question: 'what does an event of a relayed message cost compared with a chunk of a relayed chat?',
  run: (options) =>
    compareWithRelay(
      {
        name: 'message relayed',
        features: (port) => ({ plugins: vendorAt(port) }),
        load: { exact: 1, messages: 1 },
        target: 1.1,
        note: SAME_BYTES,
      },
      options,
    ),
}

export const messagesTranslateSse: Scenario = {
  name: 'messages-translate-sse',
  question: 'what does a chunk of a chat cost that is translated into an event of a message?',
  run: (options) =>
    compareWithRelay(
      {
        name: 'message translated',
        features: () => ({ plugins: { messages: {} } }),
        load: { exact: 0, messages: 1 },
        target: 2.5,
        note: SAME_TEXT,
      },
      options,
    ),
}
