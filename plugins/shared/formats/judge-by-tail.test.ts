import { expect, test } from 'vitest'
import { judgeByTail } from './judge-by-tail.ts'

test('what is judged of one stream says nothing of the one before', () => {
  const open = judgeByTail((tail) => tail.toString().endsWith('[DONE]'))
  const [one, beside] = [open(), open()]
  one.take(Buffer.from('data: [DO'))
  beside.take(Buffer.from('data: a'))
  one.take(Buffer.from('NE]'))
  expect([one.isWhole(), beside.isWhole()]).toEqual([true, false])
  one.leave()
  beside.leave()
  for (let i = 0; i < 3; i++) expect(open().isWhole()).toBe(false)
})
