/** Bodies of any size and shape up to the limit: rejected or relayed, without blocking other requests. */
import { expect, test, vi } from 'vitest'
import { JsonScan } from '#kernel'
import { bestOf } from '../support/best-of.ts'
import { jsonAnswer } from '../support/scripted-worker.ts'
import { openFleet } from './fleet.ts'

const BYTES = 6 * 1_048_576
const CHAT = '/v1/chat/completions'

const shapes: readonly (readonly [string, Buffer, number])[] = [
  ['open brackets', Buffer.alloc(BYTES, '['), 400],
  [
    'an escaped key before a long string',
    Buffer.from(`{"model":"test-model","\\u0061":"${'x'.repeat(BYTES)}"}`),
    200,
  ],
  ['empty objects', Buffer.from(`{"model":"test-model","a":[${'{},'.repeat(BYTES / 3)}{}]}`), 200],
  ['escaped quotes', Buffer.from(`{"model":"test-model","a":"${'\\"'.repeat(BYTES / 2)}"}`), 200],
  ['one key over and over', Buffer.from(`{"model":"test-model"${',"a":1'.repeat(BYTES / 6)}}`), 200],
  ['line feeds', Buffer.alloc(BYTES, '\n'), 400],
]

test.each(shapes)('6 MB of %s: other requests are served meanwhile', async (_what, body, status) => {
  const { workers, post, get } = await openFleet({ kernel: { policy: 'round_robin' } })
  workers[0].script(`POST ${CHAT}`, jsonAnswer({ id: 'x' }))
  const longestWait = async () => {
    let isOver = false
    const waits: number[] = []
    const probe = async () => {
      while (!isOver) {
        const startedAtMs = performance.now()
        expect((await get('/liveness')).status).toBe(200)
        waits.push(performance.now() - startedAtMs)
      }
    }
    const probing = probe()
    const reply = await post(CHAT, body)
    isOver = true
    await probing
    expect(reply.status).toBe(status)
    if (status === 400) expect(await reply.text()).toMatch(/levels deep|not valid JSON/)
    expect(waits.length).toBeGreaterThan(1)
    return Math.max(...waits)
  }
  // Generous, because the gateway shares this process and machine with the sender. A body that blocks does so in every
  // attempt.
  expect(await bestOf(5, 1_000, longestWait)).toBeLessThan(1_000)
})

test('a long body is scanned in steps before its model is read', async () => {
  const { workers, post } = await openFleet()
  workers[0].script(`POST ${CHAT}`, jsonAnswer({ id: 'x' }))
  const steps: number[] = []
  const { run } = JsonScan.prototype
  const spy = vi.spyOn(JsonScan.prototype, 'run').mockImplementation(function (this: JsonScan, until) {
    const from = this.reached
    const state = run.call(this, until)
    steps.push(Math.max(from, this.reached) - from)
    return state
  })
  try {
    const reply = await post(CHAT, Buffer.from(`{"model":"test-model","a":[${'1,'.repeat(BYTES / 4)}1]}`))
    expect(reply.status).toBe(200)
  } finally {
    spy.mockRestore()
  }
  expect(steps.reduce((sum, bytes) => sum + bytes, 0)).toBeGreaterThan(BYTES / 2)
  expect(Math.max(...steps)).toBeLessThan(131_072)
})
