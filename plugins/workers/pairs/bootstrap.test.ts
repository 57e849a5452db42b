import { describe, expect, test } from 'vitest'
import { withMembers } from '#shared'
import { workerEntry } from '../../../test/support/worker-entry.ts'
import { batchSize, bootstrapMembers } from './bootstrap.ts'
import { errorMessageIn, toLegError } from './errors.ts'

const prefill = workerEntry({ slot: 0, url: 'http://10.0.0.1:8000', bootstrapPort: 9001 })
const bytes = (value: unknown) => Buffer.from(JSON.stringify(value))

describe('number of rooms', () => {
  test.each([
    [{ prompt: 'a' }, 0],
    [{ prompt: 'a', n: 1 }, 0],
    [{ messages: [], n: 3 }, 3],
    [{ prompt: ['a', 'b'], n: 1 }, 2],
    [{ n: 4, prompt: ['a', 'b'] }, 2],
    [{ prompt: ['a'] }, 1],
    [{ prompt: [1, 2, 3] }, 0],
    [{ prompt: [[1], [2]] }, 2],
    [{ text: ['a', 'b', 'c'] }, 3],
    [{ input_ids: [1, 2] }, 0],
    [{ input_ids: [[1, 2], [3]] }, 2],
    [{ text: 'a', sampling_params: { n: 2 } }, 2],
    [{ prompt: [] }, 0],
    [{ n: -2 }, 0],
    [{ n: 2.5 }, 0],
    [{ n: '2' }, 0],
    [{ n: null }, 0],
  ])('%j: %d', (body, expected) => expect(batchSize(bytes(body))).toBe(expected))

  test('a body that is not an object has no batch size and no bootstrap members', () => {
    expect(batchSize(Buffer.from('[1]'))).toBeNull()
    expect(bootstrapMembers(Buffer.from(''), prefill)).toBeNull()
  })
})

describe('the bootstrap members of a pair', () => {
  test('a single request gets plain values, the room with all its digits', () => {
    const room = 9_007_199_254_740_993n
    const members = bootstrapMembers(bytes({}), prefill, () => room)
    expect(withMembers(Buffer.from('{"a":1}'), members ?? new Map())?.toString()).toBe(
      '{"bootstrap_host":"10.0.0.1","bootstrap_port":9001,"bootstrap_room":9007199254740993,"a":1}',
    )
  })

  test('a batch gets arrays of its length with different rooms', () => {
    const draws = [5n, 5n, 6n, 5n, 7n]
    const members = bootstrapMembers(bytes({ n: 3 }), prefill, () => draws.shift() ?? 0n)
    expect(members?.get('bootstrap_host')).toBe('["10.0.0.1","10.0.0.1","10.0.0.1"]')
    expect(members?.get('bootstrap_port')).toBe('[9001,9001,9001]')
    expect(members?.get('bootstrap_room')).toBe('[5,6,7]')
  })

  test('rooms are random and below 2^63', () => {
    const rooms = Array.from({ length: 200 }, () =>
      BigInt(bootstrapMembers(bytes({}), prefill)?.get('bootstrap_room') ?? '-1'),
    )
    expect(new Set(rooms).size).toBe(200)
    expect(rooms.every((room) => room >= 0n && room < 2n ** 63n)).toBe(true)
    expect(rooms.some((room) => room > 2n ** 53n)).toBe(true)
  })

  test.each([
    [{ bootstrapHost: 'boot.local' }, '"boot.local"', '9001'],
    [{ bootstrapPort: null }, '"10.0.0.1"', 'null'],
    [{ url: 'http://[::1]:8000' }, '"::1"', '9001'],
    [{ url: 'grpcs://node-1:9' }, '"node-1"', '9001'],
    [{ url: 'http://h:1@2', dataParallel: { baseUrl: 'http://h:1', rank: 2, size: 4 } }, '"h"', '9001'],
  ])('%j has bootstrap host %s and port %s', (given, host, port) => {
    const members = bootstrapMembers(bytes({}), { ...prefill, ...given })
    expect([members?.get('bootstrap_host'), members?.get('bootstrap_port')]).toEqual([host, port])
  })

  test('a client cannot request unlimited bootstrap rooms', () => {
    expect(() => bootstrapMembers(bytes({ n: 1e9 }), prefill)).toThrow('at most 4096')
  })
})

describe('an error of one worker', () => {
  test.each([
    [400, 'decode_bad_request', 400],
    [404, 'decode_not_found', 404],
    [500, 'decode_internal_error', 500],
    [502, 'decode_bad_gateway', 502],
    [503, 'decode_unavailable', 503],
    [429, 'decode_error', 500],
  ])('status %d is %s (%d)', (status, code, sent) => {
    expect(toLegError('decode', { status, headers: [], message: '' })).toMatchObject({ code, status: sent })
    expect(toLegError('prefill', { status, headers: [], message: '' }).code).toBe(
      code.replace('decode', 'prefill'),
    )
  })

  test('keeps the message of the worker', () => {
    expect(toLegError('prefill', { status: 400, headers: [], message: 'too long' }).message).toBe(
      'the prefill worker returned status 400: too long',
    )
    const shapes = [{ error: { message: 'm' } }, { error: 'm' }, { message: 'm' }, { detail: 'm' }]
    expect(shapes.map((shape) => errorMessageIn(bytes(shape)))).toEqual(['m', 'm', 'm', 'm'])
    expect(errorMessageIn(Buffer.from(' plain '))).toBe('plain')
    expect(errorMessageIn(Buffer.from('x'.repeat(2_000)))).toHaveLength(1_001)
  })
})
