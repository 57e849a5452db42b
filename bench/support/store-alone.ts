/** Writes synced turns from concurrent writers without a gateway: the limit of store and disk. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { historyTurn, openHistoryStore } from './history-store.ts'
import { announceReady } from './process.ts'

const { values } = parseArgs({
  options: {
    dir: { type: 'string', default: '' },
    writers: { type: 'string', default: '256' },
    seconds: { type: 'string', default: '2' },
  },
})
const directory = mkdtempSync(join(values.dir, 'alone-'))
const store = await openHistoryStore(directory)
let turns = 0
const startedAtMs = performance.now()
const endsAtMs = startedAtMs + Number(values.seconds) * 1_000
const cpuAtStart = process.cpuUsage()
const write = async () => {
  while (performance.now() < endsAtMs) {
    await store.write(historyTurn(), { durability: 'synced' })
    turns++
  }
}
await Promise.all(Array.from({ length: Number(values.writers) }, write))
const elapsedMs = performance.now() - startedAtMs
const cpu = process.cpuUsage(cpuAtStart)
await store.close()
rmSync(directory, { recursive: true })
announceReady({ perSecond: (turns / elapsedMs) * 1_000, cpuMicros: (cpu.user + cpu.system) / turns })
