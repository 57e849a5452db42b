/** Errors of workers in shapes that no engine sends. */
import { expect, test } from 'vitest'
import { workerMessage } from './worker-message.ts'

/** `String()` throws for it. */
const UNPRINTABLE = { toString: 1, valueOf: 1 }

test('members of other types than text are left out of the message', () => {
  const detail = [
    { loc: ['body', 'messages', 0, UNPRINTABLE], msg: 'must be text' },
    { loc: UNPRINTABLE, msg: UNPRINTABLE },
  ]
  expect(workerMessage({ detail })?.text).toBe('messages.0: must be text')
  expect(workerMessage({ detail: [{ msg: UNPRINTABLE }] })).toBeNull()
})
