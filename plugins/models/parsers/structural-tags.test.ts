/** Structural tags, member by member. */
import { expect, test } from 'vitest'
import { harmonyAnswerTag, structuralTagOf } from './structural-tags.ts'

const DIM = {
  type: 'object',
  properties: {
    level: { type: 'integer' },
    room: { type: 'string' },
    mode: { type: 'string', enum: ['soft', 'hard'] },
    rest: { type: 'object' },
  },
  required: ['level'],
}
const dim = { name: 'dim', parameters: DIM }
const ping = { name: 'ping', parameters: {} }
const schema = (json_schema: object) => ({ type: 'json_schema', json_schema })
const text = (value: string) => ({ type: 'const_string', value })

const mistralCall = (name: string, parameters: object) => ({
  begin: `{"name": "${name}", "arguments": `,
  content: schema(parameters),
  end: '}',
})
const kimiTag = (open: string, name: string, place: number, parameters: object) => ({
  begin: `${open}functions.${name}:${place}<|tool_call_argument_begin|>`,
  content: schema(parameters),
  end: '<|tool_call_end|>',
})
const [SECTION, CALL] = ['<|tool_calls_section_begin|>', '<|tool_call_begin|>']
const inklingTag = (name: string, parameters: object) => ({
  begin: `<|content_invoke_tool_json|>{"name":"${name}","args":`,
  content: schema(parameters),
  end: '}<|end_message|>',
})
const harmonyTag = (channel: string, name: string, parameters: object) => ({
  begin: `${channel} to=functions.${name}<|constrain|>json<|message|>`,
  content: schema(parameters),
  end: '',
})
const CHANNELS = ['<|start|>assistant<|channel|>commentary', '<|channel|>commentary']
const xtmlCall = (name: string, ...values: object[]) => ({
  type: 'sequence',
  elements: [
    text(`<|open|>call tool="${name}" index="`),
    { type: 'regex', pattern: '[1-9][0-9]*' },
    text('"<|sep|>'),
    ...values,
    text('<|close|>call<|sep|>'),
  ],
})
const xtmlArgument = (key: string, type: string, content: object) => ({
  type: 'sequence',
  elements: [
    text(`<|open|>argument key="${key}" type="${type}"<|sep|>`),
    content,
    text('<|close|>argument<|sep|>'),
  ],
})
const optional = (content: object) => ({ type: 'optional', content })
const xtmlDim = xtmlCall(
  'dim',
  xtmlArgument('level', 'number', schema({ type: 'integer' })),
  optional(
    xtmlArgument('room', 'string', { type: 'any_text', excludes: ['<|open|>', '<|close|>', '<|sep|>'] }),
  ),
  optional(xtmlArgument('mode', 'string', { type: 'or', elements: [text('soft'), text('hard')] })),
  optional(xtmlArgument('rest', 'object', schema({ type: 'object' }))),
)
const xtmlPing = xtmlCall('ping', { type: 'any_text', excludes: ['<|close|>call'] })
const xtmlTags = (content: object) =>
  ['', '<|close|>think<|sep|>', '<|close|>response<|sep|>'].map((prefix) => ({
    begin: `${prefix}<|open|>tools<|sep|>`,
    content: { type: 'plus', content },
    end: '<|close|>tools<|sep|>',
  }))

const goldens: [format: string, triggers: string[], required: object[], named: object[]][] = [
  [
    'mistral',
    ['[TOOL_CALLS]'],
    ...([[mistralCall('dim', DIM), mistralCall('ping', {})], [mistralCall('dim', DIM)]].map((tags) => [
      {
        begin: '[TOOL_CALLS] [',
        content: { type: 'tags_with_separator', tags, separator: ', ', at_least_one: true },
        end: ']',
      },
    ]) as [object[], object[]]),
  ],
  [
    'kimik2',
    [SECTION, CALL],
    [
      kimiTag(SECTION + CALL, 'dim', 0, DIM),
      kimiTag(CALL, 'dim', 0, DIM),
      kimiTag(SECTION + CALL, 'ping', 1, {}),
      kimiTag(CALL, 'ping', 1, {}),
    ],
    [kimiTag(SECTION + CALL, 'dim', 0, DIM), kimiTag(CALL, 'dim', 0, DIM)],
  ],
  [
    'inkling',
    ['<|content_invoke_tool_json|>'],
    [inklingTag('dim', DIM), inklingTag('ping', {})],
    [inklingTag('dim', DIM)],
  ],
  [
    'kimi_k3',
    ['<|open|>tools<|sep|>', '<|close|>think<|sep|>', '<|close|>response<|sep|>'],
    xtmlTags({ type: 'or', elements: [xtmlDim, xtmlPing] }),
    xtmlTags(xtmlDim),
  ],
  [
    'harmony',
    CHANNELS,
    [
      ...CHANNELS.map((channel) => harmonyTag(channel, 'dim', DIM)),
      ...CHANNELS.map((channel) => harmonyTag(channel, 'ping', {})),
    ],
    CHANNELS.map((channel) => harmonyTag(channel, 'dim', DIM)),
  ],
]

test.each(goldens)('structural tags of %s, required and named', (format, triggers, required, named) => {
  expect(structuralTagOf(format, [dim, ping], false)).toEqual({
    format: { type: 'triggered_tags', triggers, tags: required, at_least_one: true },
  })
  expect(structuralTagOf(format, [dim], true)).toEqual({
    format: { type: 'triggered_tags', triggers, tags: named, at_least_one: true, stop_after_first: true },
  })
})

test('other formats have no tags, names are escaped, a JSON answer of Harmony is framed', () => {
  for (const format of ['qwen', 'json', 'deepseek', 'qwen_xml'])
    expect(structuralTagOf(format, [dim], true)).toBeNull()
  const odd = JSON.stringify(structuralTagOf('kimi_k3', [{ name: 'a&"b', parameters: {} }], true))
  expect(JSON.parse(odd).format.tags[0].content.content.elements[0].value).toBe(
    '<|open|>call tool="a&amp;&quot;b" index="',
  )
  expect(harmonyAnswerTag(DIM)).toEqual({
    format: {
      type: 'triggered_tags',
      triggers: ['<|channel|>analysis', '<|channel|>final'],
      tags: [
        { begin: '<|channel|>analysis<|message|>', content: { type: 'any_text' }, end: '<|end|>' },
        { begin: '<|channel|>final <|constrain|>json<|message|>', content: schema(DIM), end: '' },
      ],
    },
  })
})
