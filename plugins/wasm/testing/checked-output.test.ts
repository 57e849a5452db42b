/** Validation of module output. */
import { describe, expect, test } from 'vitest'
import type { AttachPoint } from '../../../wasm-sdk/abi.ts'
import { checkOutput } from './checked-output.ts'

const read = (head: unknown, point: AttachPoint = 'OnRequest', body = '') =>
  checkOutput({ head, body: Buffer.from(body) }, point)

describe('an output', () => {
  test('that is empty continues, without a body', () => {
    expect(checkOutput(null, 'OnRequest')).toMatchObject({ action: 'continue', body: null, ignored: [] })
    expect(read({ action: 'continue' }, 'OnRequest', 'left over').body).toBeNull()
  })

  test('replaces the body only with replaces_body', () => {
    expect(read({ action: 'modify' }, 'OnRequest', 'x').body).toBeNull()
    expect(read({ action: 'modify', replaces_body: true }, 'OnRequest', '').body?.length).toBe(0)
  })

  test('has a status from 200 to 599; invalid ones become 400 in a rejection and null in a change', () => {
    for (const status of [199, 600, 999, 200.5, '500', null]) {
      expect(read({ action: 'reject', status }).status).toBe(400)
      expect(read({ action: 'modify', status }, 'OnResponse').status).toBeNull()
    }
    expect(read({ action: 'modify', status: 503 }, 'OnResponse').status).toBe(503)
    expect(read({ action: 'modify', status: 503 }).status).toBeNull()
  })

  test.each(['headers_set', 'headers_add', 'headers_remove', 'events'])('has at most 1,024 %s', (member) => {
    const [entry, point] = {
      headers_remove: ['x', 'OnRequest'] as const,
      events: [{ data: '' }, 'OnStreamEvent'] as const,
    }[member] ?? [['x', ''], 'OnRequest' as const]
    const answer = (count: number) => read({ action: 'modify', [member]: Array(count).fill(entry) }, point)
    expect(answer(1_024)).toMatchObject({ ignored: [] })
    expect(() => answer(1_025)).toThrow(`${member} has 1025 entries; the limit is 1024`)
  })

  test('loses connection headers and headers with line breaks', () => {
    const headers_set = [
      ['Host', 'x'],
      ['a', 'b\r\nc: d'],
      ['b', 'x\u0000'],
      ['bad name', 'x'],
      ['fine', 'tab\tü'],
    ]
    const answer = read({ action: 'modify', headers_set, headers_remove: ['Transfer-Encoding', 'x'] })
    expect(answer.headers_set).toEqual([['fine', 'tab\tü']])
    expect(answer.headers_remove).toEqual(['x'])
    expect(answer.ignored).toHaveLength(5)
  })

  test.each([
    [[], 'the head of the output must be a JSON object'],
    [{}, 'action must be continue, reject, modify or fetch (got undefined)'],
    [{ action: 'stop' }, 'action must be continue, reject, modify or fetch (got "stop")'],
    [{ action: 'modify', headers_set: { a: 'b' } }, 'headers_set must be a list'],
    [{ action: 'modify', headers_add: [['a']] }, 'headers_add must be a list'],
    [{ action: 'reject', headers: [['a', 1]] }, 'headers must be a list'],
    [{ action: 'modify', headers_remove: 'a' }, 'headers_remove must be a list'],
  ])('with head %j is rejected: %s', (head, message) => {
    expect(() => read(head)).toThrow(message)
  })

  test.each([
    [{ state: 1 }, 'state must be a string'],
    [{ state: 'ü'.repeat(32_769) }, 'state has more than 65536 bytes'],
    [{ events: {} }, 'events must be a list'],
    [{ events: [{}] }, 'data of an event must be a string'],
    [{ events: [null] }, 'data of an event must be a string'],
    [{ events: [{ name: 'a\nb', data: '' }] }, 'must be a single line'],
    [{ events: [{ data_bytes: 1 }] }, 'data_bytes of an event is outside of the body'],
    [{ events: [{ data_bytes: -1 }] }, 'data_bytes of an event is outside of the body'],
    [{ events: [{ data_bytes: '0' }] }, 'data_bytes of an event is outside of the body'],
  ])('for a stream event with head %j is rejected: %s', (head, message) => {
    expect(() => read(head, 'OnStreamEvent')).toThrow(message)
  })

  test('for a stream event drops it, or keeps it with its state', () => {
    expect(read({ events: [] }, 'OnStreamEvent')).toMatchObject({ events: [], state: null })
    expect(read({ state: '' }, 'OnStreamEvent')).toMatchObject({ events: null, state: '' })
  })
})
