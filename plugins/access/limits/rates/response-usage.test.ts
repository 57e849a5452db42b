/** Token counts in the bytes of responses. */
import { expect, test } from 'vitest'
import { ResponseUsage } from './response-usage.ts'

function tokensOf(text: string): number {
  const usage = new ResponseUsage()
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

test('the last counts of a stream apply, and events are counted', () => {
  const usage = new ResponseUsage()
  usage.readEvents(Buffer.from('data: {"usage":{"prompt_tokens":3,"completion_tokens":1}}\n\ndata: {}\n\n'))
  usage.readEvents(
    Buffer.from('data: {"usage":{"prompt_tokens":3,"completion_tokens":6}}\n\ndata: [DONE]\n\n'),
  )
  expect([usage.tokens, usage.events]).toEqual([9, 4])
})

test('counts are the same for any split of a stream', () => {
  const usage = '{"choices":[],"usage":{"prompt_tokens":1234,"total_tokens":6912,"completion_tokens":5678}}'
  const bytes = Buffer.from(`data: {"a":1}\n\ndata: {"a":2}\n\ndata: ${usage}\n\ndata: [DONE]\n\n`)
  for (let cut = 1; cut < bytes.length; cut++) {
    const reply = new ResponseUsage()
    reply.readEvents(bytes.subarray(0, cut))
    reply.readEvents(bytes.subarray(cut))
    expect([reply.tokens, reply.events], `cut at ${cut}`).toEqual([6_912, 4])
  }
  const reply = new ResponseUsage()
  for (const byte of bytes) reply.readEvents(Buffer.of(byte))
  expect([reply.tokens, reply.events]).toEqual([6_912, 4])
})

test('prompt tokens that only the first event has are kept', () => {
  const reply = new ResponseUsage()
  reply.readEvents(Buffer.from('data: {"message":{"usage":{"input_tokens":25,"output_tokens":1}}}\n\n'))
  expect(reply.tokens).toBe(26)
  reply.readEvents(Buffer.from('data: {"usage":{"output_tokens":15}}\n\n'))
  expect(reply.tokens).toBe(40)
})
