/** The text of a streamed generation that is counted if the worker does not report its usage. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { GenerationRequest, OpenCall, TokenUsage } from '#kernel'
import { UnreportedStream } from './stream-counter.ts'

const REQUEST: GenerationRequest = {
  model: 'm',
  prompt: { kind: 'text', text: 'Hello' },
  tools: [],
  toolChoice: null,
  constraint: null,
  sampling: {},
  reasoning: null,
  choices: 1,
  topLogprobs: null,
}

/** @returns the exact usage */
async function count(stream: UnreportedStream): Promise<TokenUsage | null> {
  let exact: Promise<TokenUsage> | null = null
  const call: Pick<OpenCall, 'used' | 'estimated'> = {
    used() {},
    estimated(_estimate, usage) {
      exact = usage
    },
  }
  stream.count(call as OpenCall, REQUEST)
  const usage = await exact
  stream.release()
  return usage
}

test('any order of deltas: the text of each choice is counted in one piece', async () => {
  const deltas = fc.array(fc.tuple(fc.nat(3), fc.string({ minLength: 1, unit: 'grapheme' })), {
    minLength: 1,
    maxLength: 30,
  })
  await fc.assert(
    fc.asyncProperty(deltas, async (sent) => {
      let counted = ''
      const countGeneration = async (_model: string, _request: GenerationRequest, text: string) => {
        counted = text
        return { input: 7, output: 9 }
      }
      const stream = new UnreportedStream({ countGeneration }, 'm')
      for (const [choice, delta] of sent) stream.add({ type: 'text', choice, delta })
      expect(await count(stream)).toEqual({ input: 7, output: 9, cached: 0, reasoning: 0 })
      const choices = [...new Set(sent.map(([choice]) => choice))]
      const whole = choices.map((wanted) =>
        sent
          .filter(([choice]) => choice === wanted)
          .map(([, delta]) => delta)
          .join(''),
      )
      expect(counted).toBe(whole.join('\n'))
    }),
  )
})

test('a stream without output is not counted', async () => {
  expect(await count(new UnreportedStream(null, 'm'))).toBeNull()
})
