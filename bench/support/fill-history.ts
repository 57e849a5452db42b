/** Writes turns into a history on disk until it is killed, and reports when there are so many records. */
import { parseArgs } from 'node:util'
import { announceReady } from './process.ts'

const { values } = parseArgs({
  options: { dir: { type: 'string', default: '' }, records: { type: 'string', default: '1000000' } },
})
/** Of one turn: response, turn, age and two items. */
const RECORDS_PER_TURN = 5
const TURNS_PER_WRITE = 200

interface Store {
  open(): Promise<void>
  write(changes: readonly object[], options?: object): Promise<unknown>
}

const { LevelStore } = (await import(
  new URL('../../dist/plugins/storage/level-store.js', import.meta.url).href
)) as { LevelStore: new (dir: string) => Store }
const store = new LevelStore(values.dir)
await store.open()

/** Unlike those of another run. */
const run = Date.now().toString(16).padStart(12, '0')
let count = 0
const nextId = (prefix: string) => `${prefix}_${run}7${(++count).toString(16).padStart(19, '0')}`
const reply = {
  object: 'response',
  model: 'bench',
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  reasoning: { effort: null, summary: null },
  text: { format: { type: 'text' } },
  tool_choice: 'auto',
  tools: [],
  truncation: 'disabled',
  usage: { input_tokens: 60, output_tokens: 5, total_tokens: 65 },
}

function turn(): object[] {
  const id = nextId('resp')
  const item = (role: string) => ({
    id: nextId('msg'),
    type: 'message',
    role,
    content: [{ type: 'input_text', text: 'a short turn of forty characters or so.' }],
  })
  const [input, output] = [item('user'), item('assistant')]
  const at = `${id}.000000000000`
  const put = (collection: string, name: string, value: unknown) => {
    return { kind: 'put', collection, tenant: 'anonymous', id: name, value }
  }
  const createdAtSec = Math.floor(Date.now() / 1_000)
  const place = { chain: id, turn: 0, depth: 1, bytes: 300, isBased: false }
  const past = { previousResponseId: null, conversationId: null, facts: {}, place }
  return [
    put('response-turns', at, { id, input: [input], output: [output] }),
    put('items', input.id, { turn: at }),
    put('items', output.id, { turn: at }),
    put('responses', id, { createdAtSec, status: 'completed', reply, ...past }),
    put('response-ages', `${String(createdAtSec).padStart(12, '0')}.${id}`, 0),
  ]
}

let isReported = false
for (let written = 0; ; written += TURNS_PER_WRITE * RECORDS_PER_TURN) {
  if (!isReported && written >= Number(values.records)) {
    isReported = true
    announceReady({ written })
  }
  await store.write(Array.from({ length: TURNS_PER_WRITE }, turn).flat())
}
