/**
 * Cost of tokenizers: a chat of 4 KB with and without cached segments, a large prompt on another thread, decoding of a
 * token, and memory of a vocabulary. Run `node --conditions=weir-source --expose-gc bench/micro/tokenizers.ts`; `--source
 * FOLDER` replaces the sample tokenizer.
 */
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import type { DecoderRules } from '../../plugins/models/tokenizers/decoder-rules.ts'
import { StoppingDecoder } from '../../plugins/models/tokenizers/id-decoder.ts'
import { loadTokenizer, type TokenizerFacts } from '../../plugins/models/tokenizers/load-tokenizer.ts'
import { type OpenTokenizer, openTokenizer } from '../../plugins/models/tokenizers/open-tokenizer.ts'
import { DEFAULT_LIMITS } from '../../plugins/models/tokenizers/render-budget.ts'
import { TokenTable } from '../../plugins/models/tokenizers/token-table.ts'

const { values: flags } = parseArgs({
  options: {
    source: { type: 'string', default: 'weir:sample' },
    /** Copies of the vocabulary whose memory is measured. */
    copies: { type: 'string', default: '2' },
  },
})
/** Warm-up: until then, V8 compiles on threads of its own. */
const WARM_UP_ROUNDS = 1_500
const ROUNDS = 500

interface MemoryOrder {
  readonly memory: SharedArrayBuffer
  readonly rules: DecoderRules
  readonly size: number
}
/** Memory of this thread after garbage collection, typed arrays included, shared memory excluded. */
const heldMb = () => {
  for (let times = 0; times < 3; times++) globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / 1e6
}
// As on a serving thread: it uses the shared table and has created the text of every id.
if (!isMainThread) {
  const { memory, rules, size } = workerData as MemoryOrder
  const before = heldMb()
  const decoder = new StoppingDecoder(new TokenTable(memory), rules)
  let letters = 0
  for (let id = 0; id < size; id++) letters += decoder.push(id).length
  parentPort?.postMessage({ mb: heldMb() - before, letters })
  await new Promise((resolve) => setTimeout(resolve, 100))
  // The decoder must outlive the measurement.
  process.exit(decoder.end() === undefined ? 1 : 0)
}

const caches = (enabled: boolean) => ({
  promptCache: { enabled: false, maxEntries: 1, maxBytes: 1 },
  segmentCache: { enabled, maxBytes: 50_000_000 },
})
type LoadedTokenizer = OpenTokenizer & { readonly facts: TokenizerFacts }
const open = async (isCached: boolean): Promise<LoadedTokenizer> => {
  const limits = { maxFileBytes: 1e9, rendering: DEFAULT_LIMITS, usesSegments: isCached }
  const { facts, image } = await loadTokenizer({ source: flags.source }, limits)
  return { facts, ...openTokenizer(image, { rendering: DEFAULT_LIMITS, ...caches(isCached) }) }
}

/** After garbage collection if `--expose-gc` is set. */
const rssMb = () => {
  for (let times = 0; times < 3; times++) globalThis.gc?.()
  return process.memoryUsage().rss / 1e6
}
const cpuUs = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}
/** CPU microseconds of all threads, native ones included. */
async function costUs(work: (round: number) => Promise<unknown>): Promise<number> {
  for (let round = 0; round < WARM_UP_ROUNDS; round++) await work(-1 - round)
  const before = cpuUs()
  for (let round = 0; round < ROUNDS; round++) await work(round)
  return (cpuUs() - before) / ROUNDS
}

const words = 'The gateway stores the first part of the text and requests the rest from the worker. '
const history = Array.from({ length: 8 }, (_, turn) => ({
  role: turn % 2 === 0 ? 'user' : 'assistant',
  content: `${turn}: ${words.repeat(6)}`,
}))
const chat = (round: number) => ({
  messages: [...history, { role: 'user', content: `Question ${round}: and what of the second part?` }],
})

const rows: [string, string][] = []
const startMb = rssMb()
const copies: LoadedTokenizer[] = []
let previousMb = startMb
let previousHeldMb = heldMb()
for (let copy = 1; copy <= Number(flags.copies); copy++) {
  const startedMs = performance.now()
  copies.push(await open(false))
  const mb = rssMb()
  const held = heldMb()
  rows.push([
    `copy ${copy}: ms to load, MB of the process, MB on the heap and in typed arrays`,
    `${Math.round(performance.now() - startedMs)}, ${Math.round(mb - previousMb)}, ${Math.round(held - previousHeldMb)}`,
  ])
  previousMb = mb
  previousHeldMb = held
}
const [plain] = copies
const cached = await open(true)
const { vocabSize, table, rules } = plain.facts
if (rules === null) throw new Error(`the decoder of ${flags.source} is not supported`)
rows.push(['pieces, KB of the decoding table', `${vocabSize}, ${Math.round(table.byteLength / 1e3)}`])
rows.push([
  'MB: highest memory of the process so far, at its start',
  `${Math.round(process.resourceUsage().maxRSS / 1e3)}, ${Math.round(startMb)}`,
])
for (const thread of [1, 2]) {
  const order: MemoryOrder = { memory: table, rules, size: vocabSize }
  const worker = new Worker(new URL(import.meta.url), { workerData: order, argv: process.argv.slice(2) })
  const { mb } = await new Promise<{ mb: number }>((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })
  await worker.terminate()
  rows.push([`MB of serving thread ${thread}, which has decoded every id`, mb.toFixed(1)])
}
rows.push(['bytes of the chat', String(Buffer.byteLength(plain.templates.render(chat(0))))])
const render = await costUs(async (round) => plain.templates.render(chat(round)))
const whole = await costUs((round) => plain.encoder.encode(plain.templates.render(chat(round))))
const known = await costUs((round) => cached.encoder.encode(cached.templates.render(chat(round))))
rows.push(['µs: render', render.toFixed(0)])
rows.push(['µs: render and encode', whole.toFixed(0)])
rows.push([
  `µs: the same, history remembered${cached.encoder.usesSegments ? '' : ' (not usable)'}`,
  known.toFixed(0),
])

const ids = await plain.encoder.encode(words.repeat(120))
const decoderTable = new TokenTable(table)
const decode = await costUs(async () => {
  const decoder = new StoppingDecoder(decoderTable, rules)
  for (const id of ids) decoder.push(id)
  decoder.end()
})
rows.push(['ns: decode one token', ((1_000 * decode) / ids.length).toFixed(0)])

let longest = 0
let last = performance.now()
const watch = setInterval(() => {
  longest = Math.max(longest, performance.now() - last)
  last = performance.now()
}, 1)
const large = words.repeat(1_220)
const startedMs = performance.now()
await plain.encoder.encode(large)
clearInterval(watch)
rows.push([
  'ms: encode 100 KB, longest pause of the calling thread',
  `${(performance.now() - startedMs).toFixed(0)}, ${longest.toFixed(0)}`,
])
const width = Math.max(...rows.map(([name]) => name.length))
for (const [name, figure] of [['measured', flags.source], ...rows])
  process.stdout.write(`${name.padEnd(width)}  ${figure}\n`)
