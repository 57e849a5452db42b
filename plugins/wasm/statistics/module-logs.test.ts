import { expect, test } from 'vitest'
import { type KeptLine, ModuleLogs } from './module-logs.ts'

const line = (uuid: string, text: string): KeptLine => ({
  uuid,
  atMs: 0,
  level: 'info',
  requestId: 'r',
  text,
})

test('the latest 200 lines of each module that runs are kept', () => {
  const logs = new ModuleLogs()
  logs.retain(['a', 'b'])
  logs.add(
    1,
    Array.from({ length: 300 }, (_, index) => line('a', String(index))),
  )
  logs.add(2, [line('b', 'other'), line('unknown', 'late')])
  expect(logs.read('a')?.lines.map(({ text }) => text)).toEqual(
    Array.from({ length: 200 }, (_, index) => String(299 - index)),
  )
  expect(logs.read('b')?.lines).toMatchObject([{ text: 'other', thread: 2 }])
  logs.retain(['b'])
  expect([logs.read('a'), logs.read('unknown'), logs.read('b')?.lines.length]).toEqual([null, null, 1])
})
