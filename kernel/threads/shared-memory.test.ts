/** Shared blocks under real threads: all threads get the same block, whichever requests it first. */
import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { SharedMemory } from './shared-memory.ts'

interface Ask {
  readonly name: string
  readonly bytes: number
}

/** @returns the result of each request: the previous count, or the message of the error */
async function askOnThread(memory: SharedMemory, asks: readonly Ask[], canAsk = true): Promise<unknown[]> {
  const { port1, port2 } = new MessageChannel()
  memory.connect(port1)
  const workerData = { blocks: memory.blocks, port: canAsk ? port2 : null, asks }
  const thread = new Worker(new URL('../../test/fixtures/threads/asking-thread.ts', import.meta.url), {
    workerData,
    transferList: canAsk ? [port2] : [],
    execArgv: ['--conditions=weir-source', '--no-warnings'],
  })
  const [answers] = await once(thread, 'message')
  port1.close()
  return answers as unknown[]
}

const counter: Ask = { name: 'count', bytes: 8 }

test('threads that request a new name get one block, and so do control and later threads', async () => {
  const memory = new SharedMemory()
  const [first, second, third] = await Promise.all(
    [0, 1, 2].map(() => askOnThread(memory, [counter, counter])),
  )
  const counts = [...first, ...second, ...third].toSorted()
  expect(counts).toEqual([0, 1, 2, 3, 4, 5])
  expect(new Int32Array(memory.block('count', 8))[0]).toBe(6)
  expect(await askOnThread(memory, [counter])).toEqual([6])
})

test('another size is rejected on the requesting thread, and the block is kept', async () => {
  const memory = new SharedMemory()
  memory.block('count', 8)
  const asks = [{ name: 'count', bytes: 16 }, { name: 'new', bytes: 4 }, { name: 'new', bytes: 8 }, counter]
  const [size, made, changed, count] = await askOnThread(memory, asks)
  expect(size).toBe('shared block count has 8 bytes, not 16')
  expect(made).toBe(0)
  expect(changed).toBe('shared block new has 4 bytes, not 8')
  expect(count).toBe(0)
  expect([...memory.blocks.keys()]).toEqual(['count', 'new'])
})

test('an impossible size is rejected by control, which continues', async () => {
  const memory = new SharedMemory()
  const [problem, count] = await askOnThread(memory, [{ name: 'huge', bytes: -1 }, counter])
  expect(problem).toContain('Invalid')
  expect(count).toBe(0)
})

test('a thread that cannot request blocks has those it was given', async () => {
  const memory = new SharedMemory()
  memory.block('count', 8)
  const answers = await askOnThread(memory, [counter, { name: 'other', bytes: 8 }], false)
  expect(answers).toEqual([0, 'shared block other is unknown, and this thread has no port to control'])
})
