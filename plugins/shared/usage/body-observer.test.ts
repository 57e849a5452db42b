import fc from 'fast-check'
import { expect, test } from 'vitest'
import { usageOfBody } from '#kernel'
import { BodyObserver } from './body-observer.ts'

const USAGE = { prompt_tokens: 11, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 8 } }
const USED = { input: 11, output: 5, cached: 8, reasoning: 0 }

function usageOf(body: string, cuts: readonly number[] = []) {
  const bytes = Buffer.from(body)
  const observer = new BodyObserver()
  const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  for (let at = 1; at < places.length; at++) observer.chunk(bytes.subarray(places[at - 1], places[at]))
  return observer.end().usage
}

test('usage is found wherever it stands, however long what follows is', () => {
  const ids = Array.from({ length: 10_000 }, (_, id) => id)
  expect(usageOf(JSON.stringify({ usage: USAGE, prompt_token_ids: ids }))).toEqual(USED)
  expect(usageOf(JSON.stringify({ a: [{ usage: 1 }], usage: USAGE, z: 'x\\"' }))).toEqual(USED)
})

test.each([
  { choices: [{ usage: USAGE }] },
  { content: [{ type: 'tool_use', input: { usage: USAGE } }] },
  { text: `"usage":${JSON.stringify(USAGE)}` },
  { usage: null },
  [{ usage: USAGE }],
])('content that a model chooses is none: %j', (body) => {
  expect(usageOf(JSON.stringify(body))).toBeNull()
})

test('the service tier is a member of the top-level object, before or behind the usage', () => {
  const echoed = { metadata: { service_tier: 'flex' }, tools: [{ service_tier: 'flex' }] }
  const breakdown = { kinds: {}, tier: 'priority' }
  for (const body of [
    { ...echoed, service_tier: 'priority', usage: USAGE },
    { usage: USAGE, service_tier: 'priority', ...echoed },
  ]) {
    const text = JSON.stringify(body)
    expect(usageOf(text, [9])).toEqual({ ...USED, breakdown })
    expect(usageOfBody(Buffer.from(` ${text}`))).toEqual({ ...USED, breakdown })
  }
  expect(usageOf(JSON.stringify({ ...echoed, usage: USAGE }))).toEqual(USED)
})

test('splits of the body make no difference', () => {
  const body = fc.record({
    id: fc.string(),
    choices: fc.array(fc.record({ message: fc.json().map((text) => JSON.parse(text) as unknown) })),
    service_tier: fc.constantFrom(null, 'priority', 'x'.repeat(40), { service_tier: 'flex' }),
    usage: fc.constant(USAGE),
    more: fc.array(fc.string(), { maxLength: 20 }),
  })
  fc.assert(
    fc.property(body, fc.array(fc.nat()), (value, cuts) => {
      const text = JSON.stringify(value, null, cuts.length % 3)
      const bytes = Buffer.from(text)
      expect(usageOf(text, cuts)).toEqual(usageOfBody(bytes))
    }),
  )
})
