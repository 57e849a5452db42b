/** Shared blocks under real threads: whoever asks first, all have the same. */
import { once } from 'node:events'
import { MessageChannel, Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { SharedMemory } from './shared-memory.ts'

interface Ask {
  readonly name: string
  readonly bytes: number
}

/** @returns what the thread found for each ask: the count before its own, or the message of the error */
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

test('threads that ask for a name nobody has yet get one block, and control and later threads get it too', async () => {
  const memory = new SharedMemory()
  const [first, second, third] = await Promise.all(
    [0, 1, 2].map(() => askOnThread(memory, [counter, counter])),
  )
  const counts = [...first, ...second, ...third].toSorted()
  expect(counts).toEqual([0, 1, 2, 3, 4, 5])
  expect(new Int32Array(memory.block('count', 8))[0]).toBe(6)
  expect(await askOnThread(memory, [counter])).toEqual([6])
})

test('another size is refused on the thread that asks, and the block stays', async () => {
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

test('a size that cannot be had is refused by control, which goes on', async () => {
  const memory = new SharedMemory()
  const [problem, count] = await askOnThread(memory, [{ name: 'huge', bytes: -1 }, counter])
  expect(problem).toContain('Invalid')
  expect(count).toBe(0)
})

test('a thread that cannot ask has what it was given', async () => {
  const memory = new SharedMemory()
  memory.block('count', 8)
  const answers = await askOnThread(memory, [counter, { name: 'other', bytes: 8 }], false)
  expect(answers).toEqual([0, 'shared block other is unknown, and this thread has no port to control'])
})
