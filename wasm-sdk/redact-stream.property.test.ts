/** However an engine cuts its text into events, the example that redacts streams gives the same text. */
import fc from 'fast-check'
import { beforeAll, expect, test, vi } from 'vitest'
import type { CaseEvent } from '../plugins/wasm/testing/module-case.ts'
import { runCase } from '../plugins/wasm/testing/run-cases.ts'
import { BUILD_LIMIT_MS, builtModule } from './fixtures/built-modules.ts'

vi.setConfig({ testTimeout: BUILD_LIMIT_MS })

const REPLACEMENT = '[redacted]'

let bytes: Uint8Array
beforeAll(async () => {
  bytes = await builtModule('examples/wasm-redact-stream')
}, BUILD_LIMIT_MS)

/** Few letters, so that secrets and their beginnings are everywhere; one takes two units. */
const letters = (minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom('a', 'b', 'ü', '😀'), minLength, maxLength })
const secrets = fc.uniqueArray(letters(1, 5), { minLength: 1, maxLength: 3 })
const pieces = fc.array(letters(0, 6), { minLength: 1, maxLength: 12 })
const streams = fc.array(pieces, { minLength: 3, maxLength: 5 })

/** From left to right, the longest secret at each place. */
function redacted(text: string, words: readonly string[]): string {
  const longestFirst = words.toSorted((a, b) => b.length - a.length)
  return text.replaceAll(new RegExp(longestFirst.join('|'), 'gu'), REPLACEMENT)
}

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string } }[]
}

function chatChunk(content: string, finish_reason: string | null): CaseEvent {
  return {
    data: { id: 'x', created: 1, model: 'm', choices: [{ index: 0, delta: { content }, finish_reason }] },
  }
}

function textOfChat(data: string): string {
  return data === '[DONE]' ? '' : ((JSON.parse(data) as Chunk).choices[0].delta.content ?? '')
}

/** One stream after the other through the same module, whose start is what takes the time. */
async function streamed(streams: readonly CaseEvent[][], words: readonly string[]): Promise<string[][]> {
  const steps = streams.map((events) => ({ on: 'OnStreamEvent' as const, events, expect: {} }))
  const result = await runCase({ title: 'any', config: { secrets: words.join(',') }, steps }, { bytes })
  return result.steps.map(({ differences, observed }) => {
    expect(differences).toEqual([])
    return observed.events.map(({ data }) => data)
  })
}

test('chunks of a chat completion, with and without a last chunk', async () => {
  await fc.assert(
    fc.asyncProperty(secrets, streams, fc.boolean(), async (words, all, finishes) => {
      const sent = all.map((texts) => [
        ...texts.map((text, i) => chatChunk(text, finishes && i === texts.length - 1 ? 'stop' : null)),
        { data: '[DONE]' },
      ])
      for (const [place, data] of (await streamed(sent, words)).entries()) {
        expect(data.map(textOfChat).join('')).toBe(redacted(all[place].join(''), words))
        expect(data.at(-1)).toBe('[DONE]')
      }
    }),
    { numRuns: 8 },
  )
})

test('deltas of the messages API', async () => {
  await fc.assert(
    fc.asyncProperty(secrets, streams, async (words, all) => {
      const stop = { name: 'content_block_stop', data: { type: 'content_block_stop', index: 0 } }
      const sent = all.map((texts) => [
        ...texts.map((text) => ({
          name: 'content_block_delta',
          data: { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
        })),
        stop,
      ])
      for (const [place, texts] of (await streamed(sent, words)).entries()) {
        const data = texts.map((text) => JSON.parse(text))
        expect(data.map(({ delta }) => delta?.text ?? '').join('')).toBe(redacted(all[place].join(''), words))
        expect(data.at(-1)).toEqual(stop.data)
      }
    }),
    { numRuns: 8 },
  )
})
