import { expect, test } from 'vitest'
import type { Logger } from '#kernel'
import { BatchSender } from './batch-sender.ts'

test('pending records are sent before the call returns, once', async () => {
  const sent: (readonly number[])[] = []
  const send = async (records: readonly number[]) => void sent.push(records)
  const sender = new BatchSender<number>('numbers', send, null as unknown as Logger)
  sender.add(1)
  sender.add(2)
  const now = sender.sendNow()
  expect(sent).toEqual([[1, 2]])
  await now
  await sender.sendNow()
  sender.add(3)
  await expect.poll(() => sent).toEqual([[1, 2], [3]])
})
