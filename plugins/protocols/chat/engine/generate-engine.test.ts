/** Native generation answers as events: engines send the text so far, or only the new text. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { EngineAttempt, GatewayError, GenerationEvent } from '#kernel'
import { workerEntry } from '../../../../test/support/worker-entry.ts'
import { GenerateAnswer } from './generate-engine.ts'

const attempt = {
  model: 'm',
  worker: workerEntry({ slot: 0 }),
  request: { choices: 1, topLogprobs: null },
} as EngineAttempt

/** Reads an answer of these pieces, one token each; ids are always the new ones. */
function read(pieces: readonly string[], isWhole: boolean): GenerationEvent[] {
  const events: GenerationEvent[] = []
  const answer = new GenerateAnswer(attempt, {
    emit: (event) => void events.push(event),
    fail: (error: GatewayError) => {
      throw error
    },
    stop: () => undefined,
    defer: (next) => next(),
  })
  pieces.forEach((piece, at) => {
    const count = at + 1
    answer.addEvent({
      text: isWhole ? pieces.slice(0, count).join('') : piece,
      output_ids: [at],
      meta_info: { prompt_tokens: 3, completion_tokens: count, finish_reason: isLast(at) },
    })
  })
  answer.addDone()
  return events

  function isLast(at: number) {
    return at === pieces.length - 1 ? { type: 'stop' } : null
  }
}

test('any pieces are the same events in both forms, once a piece has shown the form', () => {
  const piece = fc.string({ unit: fc.constantFrom('a', 'b', ' '), minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(fc.array(piece, { minLength: 1, maxLength: 12 }), (pieces) => {
      const inPieces = read(['x', 'y', ...pieces], false)
      const texts = inPieces.flatMap((event) => (event.type === 'text' ? [event.delta] : []))
      expect(texts).toEqual(['x', 'y', ...pieces])
      const withoutTime = (events: GenerationEvent[]) =>
        events.map((event) => ({ ...event, createdAtSec: 0 }))
      expect(withoutTime(read(['x', 'y', ...pieces], true))).toEqual(withoutTime(inPieces))
      expect(inPieces.at(-1)).toMatchObject({ usage: { inputTokens: 3, outputTokens: pieces.length + 2 } })
    }),
  )
})
