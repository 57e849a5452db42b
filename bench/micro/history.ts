/**
 * Rate of synced turns, and CPU time of loading and storing turn 10 and turn 1,000 of a conversation, from memory and from
 * disk. Run `node --conditions=weir-source bench/micro/history.ts`.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { defineValidator, type FinishedResponse, type HistoryItem } from '#kernel'
import { createLogger } from '../../kernel/observe/log.ts'
import { historyConfig } from '../../plugins/state/history/config.ts'
import { StoredHistory } from '../../plugins/state/history/history-service.ts'
import { LevelStore } from '../../plugins/state/storage/level-store.ts'

const { values: flags } = parseArgs({
  options: {
    dir: { type: 'string', default: tmpdir() },
    seconds: { type: 'string', default: '3' },
  },
})
const SECONDS = Number(flags.seconds)
const IN_FLIGHT = 256
const LENGTH = 1_000
const CHAINS = 8

const log = createLogger({ level: 'warn', thread: 0 })
const settings = defineValidator(historyConfig).parse({
  maxChainResponses: 100_000,
  maxHistoryItems: 1_000_000,
  maxHistoryBytes: 2 ** 30,
})

let count = 0
/** Version 7 UUIDs without hyphens, as in the gateway. */
const nextId = (prefix: string) =>
  `${prefix}_${Date.now().toString(16).padStart(12, '0')}7${(++count).toString(16).padStart(19, '0')}`
const item = (role: string): HistoryItem => ({
  id: nextId('msg'),
  type: 'message',
  role,
  content: [{ type: 'input_text', text: 'a short turn of forty characters or so.' }],
})
const record = (previousResponseId: string | null): FinishedResponse => ({
  id: nextId('resp'),
  createdAtSec: 1_800_000_000,
  status: 'completed',
  reply: { object: 'response', model: 'm', usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
  input: [item('user')],
  output: [item('assistant')],
  previousResponseId,
  conversationId: null,
  facts: {},
})

const cpuUs = () => {
  const { user, system } = process.cpuUsage()
  return user + system
}

const dir = await mkdtemp(join(flags.dir, 'weir-bench-history-'))
const rows: [string, string, string][] = []
const store = new LevelStore(join(dir, 'data'))
try {
  await store.open()
  const open = (cacheBytes: number) => new StoredHistory(store, { ...settings, cacheBytes }, log).responses
  const responses = open(settings.cacheBytes)

  let turns = 0
  const cpuBefore = cpuUs()
  const from = performance.now()
  const until = from + SECONDS * 1_000
  const lane = async () => {
    let previous: string | null = null
    while (performance.now() < until) {
      if (previous !== null) await responses.loadChain('a', previous)
      const next = record(turns % 10 === 0 ? null : previous)
      await responses.finish('a', next)
      previous = next.id
      turns++
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane))
  const seconds = (performance.now() - from) / 1_000
  rows.push([
    `turns stored synced, ${IN_FLIGHT} in flight`,
    `${Math.round(turns / seconds).toLocaleString('en')}/s`,
    ((cpuUs() - cpuBefore) / turns).toFixed(0),
  ])

  // Several concurrent chains, so that a batch has turns of more than one.
  const spent = new Map<number, { cpu: number; count: number }>()
  const heads: (string | null)[] = Array.from({ length: CHAINS }, () => null)
  for (let turn = 1; turn <= LENGTH; turn++) {
    const before = cpuUs()
    await Promise.all(
      heads.map(async (head, chain) => {
        if (head !== null) await responses.loadChain('a', head)
        const next = record(head)
        await responses.finish('a', next)
        heads[chain] = next.id
      }),
    )
    const near = turn <= 20 ? 10 : turn > LENGTH - 20 ? LENGTH : 0
    const sum = spent.get(near) ?? { cpu: 0, count: 0 }
    spent.set(near, { cpu: sum.cpu + cpuUs() - before, count: sum.count + CHAINS })
  }
  for (const near of [10, LENGTH]) {
    const { cpu, count: measured } = spent.get(near) ?? { cpu: 0, count: 1 }
    rows.push([`turn ${near}: load and store`, '', (cpu / measured).toFixed(0)])
  }

  const cold = open(0)
  const before = cpuUs()
  const startedAt = performance.now()
  for (const head of heads) await cold.loadChain('a', head ?? '')
  rows.push([
    `${LENGTH} turns from disk`,
    `${((performance.now() - startedAt) / CHAINS).toFixed(1)} ms`,
    ((cpuUs() - before) / CHAINS).toFixed(0),
  ])
} finally {
  await store.close()
  await rm(dir, { recursive: true, force: true })
}
for (const [what, figure, cpu] of [['what', '', 'CPU µs each'], ...rows]) {
  console.log(what.padEnd(44), figure.padStart(10), cpu.padStart(12))
}
