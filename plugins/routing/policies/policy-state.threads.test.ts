/** The tables of policies under real threads that write the same entries at once. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { SharedMemory } from '../../../kernel/threads/shared-memory.ts'
import { PolicyThread } from '../../../test/support/policy-fleet.ts'

const THREADS = 3
const SESSIONS = 3_000
/** Starting threads is slow on a loaded machine. */
const TIMEOUT_MS = 30_000

interface Answers {
  readonly homes: readonly number[]
  readonly hits: number
}

async function runThreads(
  settings: object,
  work: { sessions: number; prompts: number },
  memory = new SharedMemory(),
): Promise<Answers[]> {
  new PolicyThread(settings, memory)
  const gate = new SharedArrayBuffer(4)
  const threads = Array.from({ length: THREADS }, () => {
    const workerData = { blocks: memory.blocks, settings, gate, threads: THREADS, ...work }
    return new Worker(new URL('../../../test/support/policy-thread.ts', import.meta.url), { workerData })
  })
  return Promise.all(threads.map(async (thread) => (await once(thread, 'message'))[0] as Answers))
}

test('concurrent threads assign the same worker to each new session', {
  timeout: TIMEOUT_MS,
}, async () => {
  const memory = new SharedMemory()
  const answers = await runThreads({}, { sessions: SESSIONS, prompts: 0 }, memory)
  const [first] = answers
  for (const { homes } of answers) expect(homes).toEqual(first.homes)
  expect(new Set(first.homes).size).toBe(8)
  expect(new PolicyThread({}, memory).metric('weir_manual_policy_cache_entries')).toBe(SESSIONS)
})

test('a small prefix table that all threads overwrite never yields a slot outside the candidates', {
  timeout: TIMEOUT_MS,
}, async () => {
  const answers = await runThreads({ cacheAware: { maxBytes: 65_536 } }, { sessions: 0, prompts: 10_000 })
  for (const { hits } of answers) expect(hits).toBeGreaterThan(0)
})
