import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NO_FAULT, parseFault } from './faults.ts'
import { ScriptedFaults } from './scripts.ts'
import type { FaultRule } from './wire.ts'

const rule = (fields: Partial<FaultRule>): FaultRule => ({
  fault: 'status=503',
  count: 1,
  probability: 1,
  match: {},
  ...fields,
})

describe('reading a fault', () => {
  test('words are joined by commas or semicolons', () => {
    expect(parseFault('status=429;retry-after=2, delay=500')).toEqual({
      ...NO_FAULT,
      status: 429,
      retryAfterSec: '2',
      delayMs: 500,
    })
    expect(parseFault('hang')).toMatchObject({ isHanging: true })
    expect(parseFault('drop,malformed')).toMatchObject({ isDropped: true, isMalformed: true })
    expect(parseFault('hang-after=3,drop-after=4,drip=5')).toMatchObject({
      hangAfter: 3,
      dropAfter: 4,
      dripMs: 5,
    })
  })

  test.each([
    'explode',
    'status',
    'status=x',
    'status=99',
    'status=600',
    'delay=-1',
    'toString',
    'constructor=1',
  ])('%s is refused by name', (word) => {
    expect(() => parseFault(word)).toThrow(`'${word}'`)
  })

  test('any text is read or refused as unknown_fault', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseFault(text)
        } catch (error) {
          expect(error).toMatchObject({ code: 'unknown_fault', status: 400 })
        }
      }),
    )
  })
})

describe('faults laid out beforehand', () => {
  test('a rule is used up by as many requests as it counts', () => {
    const book = new ScriptedFaults(1)
    book.add(rule({ count: 2 }))
    expect(book.take('/generate', true).status).toBe(503)
    expect(book.list()).toEqual([rule({ count: 1 })])
    expect(book.take('/generate', true).status).toBe(503)
    expect(book.take('/generate', true)).toBe(NO_FAULT)
    expect(book.list()).toEqual([])
  })

  test('without a path it spares probes, with one it hits only that path', () => {
    const book = new ScriptedFaults(1)
    book.add(rule({}))
    book.add(rule({ fault: 'hang', match: { path: '/health' } }))
    expect(book.take('/v1/models', false)).toBe(NO_FAULT)
    expect(book.take('/health', false).isHanging).toBe(true)
    expect(book.take('/health', false)).toBe(NO_FAULT)
    expect(book.take('/v1/chat/completions', true).status).toBe(503)
  })

  test('the lottery is the same for the same seed, and near its probability', () => {
    const draw = (seed: number) => {
      const book = new ScriptedFaults(seed)
      book.add(rule({ probability: 0.2, count: 10_000 }))
      return Array.from({ length: 1000 }, () => book.take('/generate', true) !== NO_FAULT)
    }
    expect(draw(5)).toEqual(draw(5))
    expect(draw(5)).not.toEqual(draw(6))
    const hits = draw(5).filter(Boolean).length
    expect(hits).toBeGreaterThan(150)
    expect(hits).toBeLessThan(250)
  })
})
