/** Blocks from any order of events: one open at a time, consecutive indices, calls complete and separate. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { GenerationEvent } from '#kernel'
import { parseCallArguments } from '#shared'
import { BlockSequence } from './block-sequence.ts'
import type { MessageBlock } from './blocks.ts'
import { WholeBlocks } from './message.ts'
import { toClientId, toWorkerId } from './tool-ids.ts'
import { cutUnsigned } from './unsigned-thinking.ts'

class StrictBlocks extends WholeBlocks {
  #next = 0
  #isOpen = false

  override open(index: number, block: MessageBlock): void {
    if (this.#isOpen || index !== this.#next) throw new Error(`block ${index} begins, ${this.#next} is due`)
    this.#isOpen = true
    super.open(index, block)
  }
  override close(index: number, signature: string | null): void {
    if (!this.#isOpen || index !== this.#next) throw new Error(`block ${index} ends, ${this.#next} is open`)
    this.#isOpen = false
    this.#next++
    super.close(index, signature)
  }
}

const at = { choice: 0 } as const
type Piece =
  | { readonly kind: 'text' | 'reasoning'; readonly delta: string }
  | { readonly kind: 'call'; readonly pick: number }

const piece: fc.Arbitrary<Piece> = fc.oneof(
  fc.record({
    kind: fc.constantFrom('text' as const, 'reasoning' as const),
    delta: fc.string({ minLength: 1, maxLength: 6 }),
  }),
  fc.record({ kind: fc.constant('call' as const), pick: fc.nat(3) }),
)
const input = fc.dictionary(
  fc.constantFrom('a', 'b'),
  fc.oneof(fc.string(), fc.integer(), fc.constant({ c: '}' })),
)

/** Announces calls when they are first picked, and sends their arguments in pieces of three characters. */
function eventsOf(pieces: readonly Piece[], inputs: readonly object[]): GenerationEvent[] {
  const events: GenerationEvent[] = []
  const rest = new Map<number, string>()
  const numbers = new Map<number, number>()
  for (const one of pieces) {
    if (one.kind !== 'call') {
      events.push({ type: one.kind, ...at, delta: one.delta })
      continue
    }
    if (!numbers.has(one.pick)) {
      numbers.set(one.pick, numbers.size)
      rest.set(one.pick, JSON.stringify(inputs[one.pick]))
      events.push({
        type: 'tool_call',
        ...at,
        index: numbers.get(one.pick) as number,
        id: `c${one.pick}`,
        name: 'f',
      })
      continue
    }
    const text = rest.get(one.pick) as string
    const index = numbers.get(one.pick) as number
    if (text !== '') events.push({ type: 'tool_arguments', ...at, index, delta: text.slice(0, 3) })
    rest.set(one.pick, text.slice(3))
  }
  for (const [pick, text] of rest) {
    const index = numbers.get(pick) as number
    if (text !== '') events.push({ type: 'tool_arguments', ...at, index, delta: text })
  }
  for (const index of numbers.values()) events.push({ type: 'tool_call_done', ...at, index })
  events.push({ type: 'choice_done', ...at, reason: 'stop', matchedStop: null })
  return events
}

test('any interleaving gives well-formed blocks with the full content', () => {
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 40 }),
      fc.array(input, { minLength: 4, maxLength: 4 }),
      (pieces, inputs) => {
        const sink = new StrictBlocks()
        const blocks = new BlockSequence(sink, { thinking: 'text', maxCalls: 1_024 })
        for (const event of eventsOf(pieces, inputs)) blocks.add(event)
        const calls = sink.blocks.filter((block) => block.type === 'tool_use')
        const picked = [...new Set(pieces.flatMap((one) => (one.kind === 'call' ? one.pick : [])))]
        expect(calls.map(({ id, input: told }) => [id, told])).toEqual(
          picked.map((pick) => [`toolu_c${pick}`, JSON.parse(JSON.stringify(inputs[pick]))]),
        )
        const textOf = (kind: string) =>
          pieces.map((one) => (one.kind === kind ? (one as { delta: string }).delta : '')).join('')
        const thought = sink.blocks.map((block) => (block.type === 'thinking' ? block.thinking : '')).join('')
        const said = sink.blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
        expect(thought).toBe(textOf('reasoning'))
        expect(said.replace(/\s/g, '')).toBe(textOf('text').replace(/\s/g, ''))
      },
    ),
  )
})

test('the pieces of a long call with text between them are parsed once', () => {
  const pieces = 60_000
  const blocks = new BlockSequence(new StrictBlocks(), { thinking: 'text', maxCalls: 8 })
  const before = process.cpuUsage()
  blocks.add({ type: 'tool_call', ...at, index: 0, id: 'c', name: 'f' })
  blocks.add({ type: 'tool_arguments', ...at, index: 0, delta: '{"a":[{}' })
  for (let piece = 0; piece < pieces; piece++) {
    blocks.add({ type: 'text', ...at, delta: 'x' })
    blocks.add({ type: 'tool_arguments', ...at, index: 0, delta: ',{}' })
  }
  // Parsing the whole input at each piece would take a minute.
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(5_000)
})

test.each([
  ['an object', ['{"a":', '"}\\""', '} \n'], true],
  ['an object in two pieces', [' {', '}'], true],
  ['a string that ends with a brace', ['{"a":"', '}'], false],
  ['invalid JSON', ['{a}', ' '], false],
  ['two objects', ['{}', '{}'], false],
  ['a list', ['[]'], false],
])('%s counts as complete input: %s, %s', (_what, deltas, isWhole) => {
  const sink = new StrictBlocks()
  const blocks = new BlockSequence(sink, { thinking: 'text', maxCalls: 8 })
  blocks.add({ type: 'tool_call', ...at, index: 0, id: 'c', name: 'f' })
  for (const delta of deltas) blocks.add({ type: 'tool_arguments', ...at, index: 0, delta })
  blocks.add({ type: 'text', ...at, delta: 'x' })
  expect(sink.blocks).toHaveLength(isWhole ? 2 : 1)
})

test('any call id is restored after the round trip', () => {
  const ids = fc.string({ minLength: 1 }).filter((id) => !id.startsWith('toolu_') && id.isWellFormed())
  fc.assert(
    fc.property(ids, (id) => {
      expect(toClientId(id)).toMatch(/^toolu_[\w-]+$/)
      expect(toWorkerId(toClientId(id))).toBe(id)
    }),
  )
})

test('only unsigned thinking is removed, for any spacing', () => {
  const block = fc.constantFrom(
    { type: 'thinking', thinking: 'a', signature: '' },
    { type: 'thinking', thinking: '', signature: 'sig' },
    { type: 'thinking', thinking: 'b' },
    { type: 'text', text: '"signature":""' },
    { type: 'tool_use', id: 't', name: 'f', input: { type: 'thinking', signature: '' } },
  )
  const message = fc.record({
    role: fc.constant('assistant'),
    content: fc.oneof(fc.string(), fc.array(block, { maxLength: 5 })),
  })
  const isUnsigned = ({ type, signature }: { type: string; signature?: string }) =>
    type === 'thinking' && !signature
  fc.assert(
    fc.property(fc.array(message, { maxLength: 4 }), fc.constantFrom(0, 1, 3), (messages, indent) => {
      const body = Buffer.from(JSON.stringify({ model: 'm', messages, z: 1 }, null, indent))
      const kept = messages.flatMap((one) => {
        if (typeof one.content === 'string') return [one]
        const content = one.content.filter((each) => !isUnsigned(each))
        return content.length === 0 && one.content.length > 0 ? [] : [{ ...one, content }]
      })
      const cut = cutUnsigned(body)
      expect(JSON.parse((cut ?? body).toString())).toEqual(
        JSON.parse(JSON.stringify({ model: 'm', messages: kept, z: 1 })),
      )
    }),
  )
})

test('truncated input is not completed', () => {
  expect(parseCallArguments('{"a":"b"}')).toEqual({ a: 'b' })
  expect(parseCallArguments('{"a":"b')).toEqual({})
  expect(parseCallArguments('{"a":[1')).toEqual({})
  expect(parseCallArguments('[1]')).toEqual({})
  expect(parseCallArguments('')).toEqual({})
})
