/** The LevelDB store without a gateway, and the records of one short turn as the history stores them. */
import type { Change } from '#kernel'
import { LevelStore } from '../../plugins/state/storage/level-store.ts'

export async function openHistoryStore(dir: string): Promise<LevelStore> {
  const store = new LevelStore(dir)
  await store.open()
  return store
}

/** Response, turn, age and two items. */
export const RECORDS_PER_TURN = 5

const RESPONSE = {
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

/** Makes the ids of each run different. */
const run = Date.now().toString(16).padStart(12, '0')
let count = 0

function nextId(prefix: string): string {
  count += 1
  return `${prefix}_${run}7${count.toString(16).padStart(19, '0')}`
}

/** Changes that store one turn. */
export function historyTurn(): Change[] {
  const id = nextId('resp')
  const item = (role: string) => ({
    id: nextId('msg'),
    type: 'message',
    role,
    content: [{ type: 'input_text', text: 'a short turn of forty characters or so.' }],
  })
  const [input, output] = [item('user'), item('assistant')]
  const at = `${id}.000000000000`
  const put = (collection: string, name: string, value: unknown): Change => {
    return { kind: 'put', collection, tenant: 'anonymous', id: name, value }
  }
  const createdAtSec = Math.floor(Date.now() / 1_000)
  const place = { chain: id, turn: 0, depth: 1, bytes: 300, isBased: false }
  const past = { previousResponseId: null, conversationId: null, facts: {}, place }
  return [
    put('response-turns', at, { id, input: [input], output: [output] }),
    put('items', input.id, { turn: at }),
    put('items', output.id, { turn: at }),
    put('responses', id, { createdAtSec, status: 'completed', reply: RESPONSE, ...past }),
    put('response-ages', `${String(createdAtSec).padStart(12, '0')}.${id}`, 0),
  ]
}
