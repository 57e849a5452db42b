/** Writes turns into a history on disk until it is killed; reports once `--records` are written. */
import { parseArgs } from 'node:util'
import { historyTurn, openHistoryStore, RECORDS_PER_TURN } from './history-store.ts'
import { announceReady } from './process.ts'

const { values } = parseArgs({
  options: { dir: { type: 'string', default: '' }, records: { type: 'string', default: '1000000' } },
})
const TURNS_PER_WRITE = 200

const store = await openHistoryStore(values.dir)
let isReported = false
for (let written = 0; ; written += TURNS_PER_WRITE * RECORDS_PER_TURN) {
  if (!isReported && written >= Number(values.records)) {
    isReported = true
    announceReady({ written })
  }
  await store.write(Array.from({ length: TURNS_PER_WRITE }, historyTurn).flat())
}
