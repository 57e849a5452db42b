/** Token counts in the bytes of replies. */
import { expect, test } from 'vitest'
import { ReplyUsage } from './usage.ts'

function tokensOf(text: string): number {
  const usage = new ReplyUsage()
  usage.read(Buffer.from(text))
  return usage.tokens
}

test.each([
  ['chat', '{"usage":{"prompt_tokens":12,"total_tokens":20,"completion_tokens":8}}', 20],
  ['completion first', '{"usage":{"completion_tokens": 8, "prompt_tokens": 12}}', 20],
  ['messages', '{"usage":{"input_tokens":5,"output_tokens":7}}', 12],
  ['embeddings', '{"usage":{"prompt_tokens":9,"total_tokens":9}}', 9],
  ['generate', '{"text":"x","meta_info":{"prompt_tokens":3,"completion_tokens":4}}', 7],
  ['generated text that looks like one', '{"content":"\\"prompt_tokens\\":99"}', -1],
  ['none', '{"usage":null}', -1],
  ['no number', '{"prompt_tokens":null}', -1],
])('%s', (_, text, tokens) => expect(tokensOf(text)).toBe(tokens))

test('the last counts of a stream stand, and events are counted', () => {
  const usage = new ReplyUsage()
  usage.readEvents(Buffer.from('data: {"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\ndata: {}\n\n'))
  usage.readEvents(
    Buffer.from('data: {"usage":{"prompt_tokens":3,"completion_tokens":6}}\n\ndata: [DONE]\n\n'),
  )
  expect([usage.tokens, usage.events]).toEqual([9, 4])
})
