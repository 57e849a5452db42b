import { expect, test } from 'vitest'
import { ResponseFlow } from './response-flow.ts'
import { BatchedStreamWriter } from './stream-writer.ts'

function target(write: () => boolean) {
  const failures: unknown[] = []
  const sent: (string | Buffer)[] = []
  return {
    failures,
    sent,
    flow: new ResponseFlow(),
    setListener() {},
    writeStream(chunk: string | Buffer) {
      const isWritable = write()
      sent.push(chunk)
      return isWritable
    },
    endStream(last?: string | Buffer) {
      if (last !== undefined) sent.push(last)
    },
    fail: (error: unknown) => failures.push(error),
  }
}

test('a write that throws fails its own request, and the other writers of the turn send', async () => {
  const broken = target(() => {
    throw new Error('broken')
  })
  const sound = target(() => true)
  new BatchedStreamWriter(broken).write('a')
  new BatchedStreamWriter(sound).write('b')
  await expect.poll(() => sound.sent).toEqual(['b'])
  expect(broken.failures).toEqual([new Error('broken')])
})

test('the chunks of one turn are sent in one write', async () => {
  const one = target(() => true)
  const writer = new BatchedStreamWriter(one)
  writer.write('a')
  writer.write(Buffer.from('b'))
  writer.write('c')
  await expect.poll(() => one.sent.map(String)).toEqual(['abc'])
})
