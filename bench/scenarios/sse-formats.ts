/** The chat stream of relay-sse in other formats, compared with the relayed chat stream of the same run. */
import { compareCheckouts } from '../support/compare-checkouts.ts'
import { type Figure, type RunOptions, ratios, type Scenario } from '../support/figure.ts'
import { configurationsOf, startGateway } from '../support/gateway.ts'
import type { configurations, GatewayFeatures } from '../support/gateway-config.ts'
import { cpuPerChunk, measureRounds, runLoad } from '../support/load.ts'
import { temporaryDirectory } from '../support/process.ts'
import { type RunningWorker, type Subject, startWorker } from '../support/subject.ts'

const STREAMS = 32

interface Format {
  readonly name: string
  /** @param workerPort of the simulated worker */
  features(checkout: typeof configurations, workerPort: number): GatewayFeatures
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

async function startFormat(format: Format, root: string | null, worker: RunningWorker): Promise<Subject> {
  const features = format.features(await configurationsOf(root), worker.port)
  return startGateway({ root, workerPorts: worker.ports, ...features })
}

async function compareWithRelay(format: Format, options: RunOptions): Promise<Figure[]> {
  const worker = await startWorker()
  const variants: Variant[] = []
  try {
    const workerPorts = worker.ports
    variants.push({ name: 'relayed', subject: await startGateway({ workerPorts }), load: { exact: 1 } })
    const subject = await startFormat(format, null, worker)
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

function sseFormat(name: string, question: string, format: Format): Scenario {
  return {
    name,
    question,
    run: (options) => compareWithRelay(format, options),
    compare: (options) =>
      compareCheckouts(
        {
          start: (root, worker) => startFormat(format, root, worker),
          client: 'sse-load.ts',
          load: { streams: STREAMS, ...format.load },
        },
        options,
      ),
  }
}

export const generateSse = sseFormat(
  'generate-sse',
  'what does a chunk of a chat cost that is decoded into generation events and encoded again?',
  {
    name: 'chat normalized',
    features: (checkout) => checkout.normalizedChat(),
    load: { exact: 0 },
    target: 2,
    note: SAME_TEXT,
  },
)

export const responsesSse = sseFormat(
  'responses-sse',
  'what does a text delta of a streamed, stored response cost?',
  {
    name: 'response stored',
    features: (checkout) => checkout.storedResponses(temporaryDirectory()),
    load: { exact: 0, responses: 1 },
    target: 2.5,
    note: SAME_TEXT,
  },
)

export const responsesProxySse = sseFormat(
  'responses-proxy-sse',
  'what does a text delta of a stored response cost whose worker streams responses?',
  {
    name: 'response of a response',
    features: (checkout, port) => checkout.responsesVendorAt(port, temporaryDirectory()),
    load: { exact: 0, responses: 1 },
    target: 2.5,
    note: SAME_TEXT,
  },
)

export const messagesProxySse = sseFormat(
  'messages-proxy-sse',
  'what does an event of a relayed message cost compared with a chunk of a relayed chat?',
  {
    name: 'message relayed',
    features: (checkout, port) => checkout.vendorAt(port),
    load: { exact: 1, messages: 1 },
    target: 1.1,
    note: SAME_BYTES,
  },
)

export const messagesTranslateSse = sseFormat(
  'messages-translate-sse',
  'what does a chunk of a chat cost that is translated into an event of a message?',
  {
    name: 'message translated',
    features: (checkout) => checkout.messages(),
    load: { exact: 0, messages: 1 },
    target: 2.5,
    note: SAME_TEXT,
  },
)
