/** Property tests of gRPC responses: chunking never changes the text, and invalid messages only cause the documented error. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { EngineAttempt, GenerationEvent, GenerationRequest, LoadedTokenizer } from '#kernel'
import type { GatewayError } from '../../kernel/index.ts'
import { toByteLetters } from '../../plugins/models/tokenizers/byte-letters.ts'
import { type DecoderRules, toDecoderRules } from '../../plugins/models/tokenizers/decoder-rules.ts'
import { StoppingDecoder } from '../../plugins/models/tokenizers/id-decoder.ts'
import { buildTokenTable } from '../../plugins/models/tokenizers/token-table.ts'
import { GenerateReader } from '../../plugins/workers/grpc/engine/generate-reader.ts'
import { EnginePrompt } from '../../plugins/workers/grpc/engine/prompt.ts'
import { findRuntime, RUNTIMES } from '../../plugins/workers/grpc/runtimes/runtime-table.ts'
import * as mlx from '../../proto/gen/mlx-engine.ts'
import * as sglang from '../../proto/gen/sglang-scheduler.ts'
import * as tokenspeed from '../../proto/gen/tokenspeed-scheduler.ts'
import * as trtllm from '../../proto/gen/trtllm-service.ts'
import * as vllm from '../../proto/gen/vllm-engine.ts'
import { breachesOf } from '../support/generation-grammar.ts'
import { workerEntry } from '../support/worker-entry.ts'
import { PLAIN_REQUEST } from './engine-contract.ts'

/** One id per byte, so that chunks can end within a character. */
const RULES = toDecoderRules({ type: 'ByteLevel' }) as DecoderRules
const EOS = 256
const TABLE = buildTokenTable({
  size: EOS + 1,
  piece: (id) => (id < EOS ? toByteLetters(Buffer.of(id)) : null),
  added: [{ id: EOS, content: '<|end|>', special: true }],
  rules: RULES,
})
const tokenizer: Pick<LoadedTokenizer, 'eosIds' | 'openDecoder'> = {
  eosIds: [EOS],
  openDecoder: (options) => new StoppingDecoder(TABLE, RULES, options),
}

interface Messages {
  /** @param total ids of the choice so far, these included */
  readonly chunk: (ids: readonly number[], index: number, total: number) => Buffer
  readonly complete: (index: number, total: number) => Buffer
}

const END = { finishReason: 'stop' }
const MESSAGES: Readonly<Record<string, Messages>> = {
  sglang: {
    chunk: (tokenIds, index, completionTokens) =>
      sglang.encodeGenerateResponse({ chunk: { tokenIds, index, completionTokens } }),
    complete: (index, completionTokens) =>
      sglang.encodeGenerateResponse({ complete: { index, completionTokens, ...END } }),
  },
  vllm: {
    chunk: (tokenIds, index) =>
      vllm.encodeGenerateResponse({ chunk: { tokenIds, index, completionTokens: tokenIds.length } }),
    complete: (index, completionTokens) =>
      vllm.encodeGenerateResponse({ complete: { index, completionTokens, ...END } }),
  },
  trtllm: {
    chunk: (tokenIds, sequenceIndex, completionTokens) =>
      trtllm.encodeGenerateResponse({ chunk: { tokenIds, sequenceIndex, completionTokens } }),
    complete: (sequenceIndex, completionTokens) =>
      trtllm.encodeGenerateResponse({ complete: { sequenceIndex, completionTokens, ...END } }),
  },
  tokenspeed: {
    chunk: (tokenIds, index, completionTokens) =>
      tokenspeed.encodeGenerateResponse({ chunk: { tokenIds, index, completionTokens } }),
    complete: (index, completionTokens) =>
      tokenspeed.encodeGenerateResponse({ complete: { index, completionTokens, ...END } }),
  },
  mlx: {
    chunk: (tokenIds, _index, completionTokens) =>
      mlx.encodeGenerateResponse({ chunk: { tokenIds, completionTokens } }),
    complete: (index, completionTokens) =>
      mlx.encodeGenerateResponse({ complete: { index, completionTokens, ...END } }),
  },
}

function read(runtimeType: string, messages: readonly Buffer[], changes: Partial<GenerationRequest>) {
  const request = { ...PLAIN_REQUEST, ...changes }
  const runtime = findRuntime(runtimeType)
  if (runtime === undefined) throw new Error(runtimeType)
  const events: GenerationEvent[] = []
  const failures: GatewayError[] = []
  let hasStopped = false
  const attempt = { request, model: 'm', stream: true, worker: workerEntry({ slot: 0 }) }
  const reader = new GenerateReader(
    attempt as EngineAttempt,
    {
      emit: (event) => void events.push(event),
      fail: (error) => void failures.push(error),
      stop: () => {
        hasStopped = true
      },
      defer: (next) => next(),
    },
    {
      runtime,
      prompt: new EnginePrompt({
        tokenIds: new Uint32Array(3),
        text: 'abc',
        tokenizer: tokenizer as LoadedTokenizer,
        output: null,
        request,
        stringStopIds: [],
      }),
      skipsSpecialTokens: true,
      constraintWaits: false,
      sentStopIds: [],
      prefilled: null,
      name: null,
    },
  )
  reader.onStart()
  for (const message of messages) if (!hasStopped && failures.length === 0) reader.onData(message)
  if (!hasStopped && failures.length === 0) reader.onEnd()
  return { events, failures }
}

function textsOf(events: readonly GenerationEvent[], choices: number): string[] {
  const texts = Array<string>(choices).fill('')
  for (const event of events) if (event.type === 'text') texts[event.choice] += event.delta
  return texts
}

/** Chunks of each choice, of 0 to 4 ids, interleaved by `order`; then the final messages. */
function sliced(
  { chunk, complete }: Messages,
  choices: readonly (readonly number[])[],
  sizes: readonly number[],
  order: readonly number[],
): Buffer[] {
  const messages: Buffer[] = []
  const done = choices.map(() => 0)
  for (let step = 0; done.some((count, index) => count < choices[index].length); step++) {
    const open = choices.map((_, index) => index).filter((index) => done[index] < choices[index].length)
    const index = open[order[step % order.length] % open.length]
    // Every tenth chunk is not empty, so that the loop ends.
    const size = step % 10 === 9 ? 1 : sizes[step % sizes.length]
    const ids = choices[index].slice(done[index], done[index] + size)
    done[index] += ids.length
    messages.push(chunk(ids, index, done[index]))
  }
  // A first chunk shows that the response is streamed, also without ids.
  const starts = choices.map((_, index) => chunk([], index, 0))
  return [...starts, ...messages, ...choices.map((ids, index) => complete(index, ids.length))]
}

const text = fc.string({ unit: 'binary', maxLength: 30 }).map((value) => value.toWellFormed())
const sizes = fc.array(fc.nat({ max: 4 }), { minLength: 1, maxLength: 12 })
const order = fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 12 })
const idsOf = (value: string) => [...Buffer.from(value)]

describe.each(RUNTIMES.map(({ name, maxChoices }) => ({ name, maxChoices })))(
  '$name',
  ({ name, maxChoices }) => {
    const messages = MESSAGES[name]

    test('any chunking and any order of the choices gives the same texts and counts', () => {
      const texts = fc.array(text, { minLength: 1, maxLength: Math.min(3, maxChoices) })
      fc.assert(
        fc.property(texts, sizes, order, (expected, size, steps) => {
          const ids = expected.map(idsOf)
          const { events, failures } = read(name, sliced(messages, ids, size, steps), {
            choices: expected.length,
            sampling: {},
          })
          expect(failures).toEqual([])
          expect(breachesOf(events)).toEqual([])
          expect(textsOf(events, expected.length)).toEqual(expected)
          expect(events.at(-1)).toMatchObject({
            type: 'finished',
            usage: { outputTokens: ids.flat().length },
          })
        }),
        { numRuns: 300 },
      )
    })

    test('any chunking ends the text before the same stop string', () => {
      fc.assert(
        fc.property(text, text, sizes, (before, after, size) => {
          const whole = `${before}<stop>${after}`
          const { events } = read(name, sliced(messages, [idsOf(whole)], size, [0]), {
            sampling: { stop: ['<stop>'] },
          })
          expect(textsOf(events, 1)).toEqual([whole.slice(0, whole.indexOf('<stop>'))])
          expect(events.filter(({ type }) => type === 'finished')).toHaveLength(1)
        }),
        { numRuns: 300 },
      )
    })

    test('invalid messages cause engine_message_unreadable and nothing else', () => {
      const change = fc.record({
        at: fc.nat(),
        kind: fc.nat({ max: 3 }),
        bytes: fc.uint8Array({ maxLength: 6 }),
      })
      fc.assert(
        fc.property(text, sizes, fc.array(change, { maxLength: 6 }), (value, size, changes) => {
          const sent = sliced(messages, [idsOf(value)], size, [0])
          for (const { at, kind, bytes } of changes) {
            const nth = at % sent.length
            const message = sent[nth]
            const place = at % (message.length + 1)
            const end =
              kind === 0
                ? message.length
                : kind === 1
                  ? Math.min(message.length, place + bytes.length)
                  : place
            const inserted = kind === 3 ? Buffer.alloc(0) : Buffer.from(bytes)
            sent[nth] = Buffer.concat([message.subarray(0, place), inserted, message.subarray(end)])
            if (kind === 3) sent[nth] = sent[nth].subarray(0, place)
          }
          const { events, failures } = read(name, sent, { sampling: { maxTokens: 1_000 } })
          expect(failures.map(({ code }) => code)).toEqual(failures.map(() => 'engine_message_unreadable'))
          expect(failures.length).toBeLessThan(2)
          const ends = events.filter(({ type }) => type === 'finished').length
          expect(ends).toBeLessThan(failures.length === 0 ? 2 : 1)
          for (const delta of textsOf(events, 1)) expect(delta.isWellFormed()).toBe(true)
        }),
        { numRuns: 500 },
      )
    })
  },
)
