import { expect, test } from 'vitest'
import { observe } from '../../../../test/support/observe.ts'
import { messagesFormat } from './messages-format.ts'

const STOP = '\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
const START = 'event: message_start\ndata: {"type":"message_start"}\n\n'

test.each([
  ['event: message_stop\ndata: {"type":"message_stop"}\n\n', 'complete'],
  ['event:message_stop\r\ndata:{"type":"message_stop"}\r\n\r\n', 'complete'],
  ['data: {"type": "message_stop", "metrics": {"latency": 1}}\n\n', 'complete'],
  ['event: message_stop\ndata: {"type":"message_stop"}\n\n: bye\n\ndata: [DONE]\n\n', 'complete'],
  ['event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"m"}}\n\n', 'error'],
  ['', 'cut'],
  ['event: ping\ndata: {"type":"ping"}\n\n', 'cut'],
  ['event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}\n\n', 'cut'],
  // Event text inside the model's text does not count.
  [`data: {"delta":{"text":${JSON.stringify(STOP)}}}\n\n`, 'cut'],
  ['event: message_st', 'cut'],
])('end of a stream that ends with %j: %s', (end, expected) => {
  expect(observe(messagesFormat, end === '' ? '' : START + end).end).toBe(expected)
})

test('the start counts the input with its cached parts, later events the output', () => {
  const stream =
    'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":10,"cache_creation_input_tokens":1,"output_tokens":1}}}\n\n' +
    'event: content_block_start\ndata: {"type":"content_block_start","content_block":{"type":"tool_use","input":{"usage":{"output_tokens":999}}}}\n\n' +
    'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":20,"output_tokens_details":{"thinking_tokens":4}}}\n\n'
  for (let cut = 0; cut < stream.length; cut++) {
    const usage = { input: 16, output: 20, cached: 10, reasoning: 4 }
    expect(observe(messagesFormat, stream, { cuts: [cut] })).toMatchObject({ text: stream, usage })
  }
})

const data = (json: object) => `data: ${JSON.stringify(json)}\n\n`

test('events before the output, however they are joined, change nothing', () => {
  const start = { type: 'message_start', message: { role: 'assistant', usage: { input_tokens: 1 } } }
  const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'ab' } }
  const stream = `event: message_start\n${data(start)}${`event: content_block_delta\n${data(delta)}`.repeat(9)}`
  for (let chunkBytes = 1; chunkBytes <= stream.length; chunkBytes++) {
    const cuts = Array.from({ length: Math.floor(stream.length / chunkBytes) }, (_, at) => at * chunkBytes)
    expect(observe(messagesFormat, stream, { cuts }).outputEvents).toBe(9)
  }
  expect(messagesFormat.textOf?.(Buffer.from(stream))).toBe('ab'.repeat(9))
})
