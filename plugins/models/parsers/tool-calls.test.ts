import { expect, test } from 'vitest'
import { callWriters, toolsOf, type WrittenCall } from '../../../test/support/parsers/call-writers.ts'
import { examples } from '../../../test/support/parsers/examples.ts'
import { formatOf, openOutput, streamed, whole } from '../../../test/support/parsers/parse-in-chunks.ts'

const withTypes = (name: string, types: Record<string, string>) => [
  {
    name,
    parameters: {
      properties: Object.fromEntries(Object.entries(types).map(([key, type]) => [key, { type }])),
    },
  },
]
const kept = { dropsTrailing: false }
const DEEPSEEK = ['<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>', '<｜tool▁call▁end｜><｜tool▁calls▁end｜>']
const DSML = '<｜DSML｜'
const xml = (name: string, ...pairs: [string, string][]) =>
  `<tool_call><function=${name}>${pairs.map(([key, value]) => `<parameter=${key}>${value}</parameter>`).join('')}</function></tool_call>`
const minimax = (body: string) => `<minimax:tool_call>${body}</minimax:tool_call>`
const kimi = (id: string, body: string) =>
  `<|tool_calls_section_begin|><|tool_call_begin|>${id}<|tool_call_argument_begin|>${body}<|tool_call_end|><|tool_calls_section_end|>`

test('json keeps the prose before an array of calls with its white space', () => {
  expect(whole('json', 'Checking. [{"name":"a","arguments":{}},{"name":"b","arguments":{}}]')).toEqual({
    text: 'Checking. ',
    calls: [
      ['a', '{}'],
      ['b', '{}'],
    ],
  })
})

test('json accepts parameters for arguments, and missing arguments', () => {
  expect(whole('json', '{"name":"a","parameters":{"x":1}}').calls).toEqual([['a', '{"x":1}']])
  expect(whole('json', '{"name":"a"}').calls).toEqual([['a', '{}']])
})

test('json prefers name to function, and rejects a number as name', () => {
  expect(whole('json', '{"function":"b","name":"a"}').calls).toEqual([['a', '{}']])
  expect(whole('json', '{"name":7}')).toEqual({ text: '{"name":7}', calls: [] })
})

test.each([
  ["{'name':'a','arguments':{}}"],
  ['{"name":"a","arguments":{"x":1,}}'],
  ['{"city":"Oslo","at":{"name":"a","arguments":{}}}'],
])('json returns %s as text', (input) => {
  expect(whole('json', input)).toEqual({ text: input, calls: [] })
})

test('json reads 100 calls of one array in order', () => {
  const calls = Array.from({ length: 100 }, (_, index) => ({ name: `f${index}`, arguments: { index } }))
  expect(whole('json', JSON.stringify(calls)).calls.map(([name]) => name)).toEqual(
    calls.map(({ name }) => name),
  )
})

test('the last value of a repeated key wins', () => {
  const [[, written]] = whole('json', '{"name":"a","arguments":{"x":1,"x":2}}').calls
  expect(JSON.parse(written)).toEqual({ x: 2 })
})

test('brackets in strings do not end a mistral array', () => {
  const input = '[TOOL_CALLS] [{"name":"a","arguments":{"t":"x] [0] \\"]"}}]'
  expect(whole('mistral', input).calls).toEqual([['a', '{"t":"x] [0] \\"]"}']])
})

test('mistral without an array is text', () => {
  expect(whole('mistral', '[TOOL_CALLS] none')).toEqual({ text: '[TOOL_CALLS] none', calls: [] })
})

test('a mistral array may span several lines', () => {
  const input = `[TOOL_CALLS] ${JSON.stringify([{ name: 'a', arguments: { x: [1] } }], null, 2)}`
  expect(whole('mistral', input).calls).toEqual([['a', '{"x":[1]}']])
})

test('qwen reads the complete block beside a broken one', () => {
  const input =
    'Hi <tool_call>\n{"name":"a","arguments":{}}\n</tool_call>\n<tool_call>\n{"name":\n</tool_call>'
  expect(whole('qwen', input)).toEqual({ text: 'Hi ', calls: [['a', '{}']] })
})

test('qwen accepts a missing closing tag', () => {
  const input = '<tool_call>\n{"name":"a","arguments":{}}'
  expect(whole('qwen', input)).toEqual({ text: '', calls: [['a', '{}']] })
})

test('qwen_xml converts values by the declared type', () => {
  const input = xml('f', ['a', '4'], ['b', 'true'], ['c', '[1]'], ['d', '5'])
  const tools = withTypes('f', { a: 'string', b: 'string', c: 'string', d: 'integer' })
  expect(whole('qwen_xml', input, { tools }).calls).toEqual([['f', '{"a":"4","b":"true","c":"[1]","d":5}']])
})

test('qwen_xml does not decode entities', () => {
  const input = xml('f', ['a', 'x &amp; &#39;'])
  const calls = [['f', '{"a":"x &amp; &#39;"}']]
  expect(whole('qwen_xml', input).calls).toEqual(calls)
  expect(whole('qwen_xml', input, { tools: withTypes('f', { a: 'string' }) }).calls).toEqual(calls)
})

test('qwen_xml accepts a missing </function>', () => {
  const input = '<tool_call><function=f><parameter=a>1</parameter></tool_call>'
  expect(whole('qwen_xml', input).calls).toEqual([['f', '{"a":1}']])
})

test('qwen_xml accepts names in any script', () => {
  expect(whole('qwen_xml', xml('größe', ['breite😀', '1'])).calls).toEqual([['größe', '{"breite😀":1}']])
})

test('qwen_xml accepts a value of 1 MiB', () => {
  const value = 'a<b & "c" \n'.repeat(95_326).trim()
  const [[, written]] = whole('qwen_xml', xml('f', ['a', value])).calls
  expect(JSON.parse(written)).toEqual({ a: value })
})

test('pythonic converts literals to JSON', () => {
  const input = "[f(a=True, b=False, c=None, d=(1, 'x'), e={'k': {'l': [1.50, -2]}})]"
  expect(whole('pythonic', input).calls).toEqual([
    ['f', '{"a":true,"b":false,"c":null,"d":[1,"x"],"e":{"k":{"l":[1.50,-2]}}}'],
  ])
})

test.each(['[f(1)]', '[f(a=1, 2)]', '[f(a=b.c)]', '[f(**x)]', '[f(a=lambda: 0)]', '[f(a=g(1))]'])(
  'pythonic returns %s as text',
  (input) => {
    expect(whole('pythonic', input)).toEqual({ text: input, calls: [] })
  },
)

test('pythonic does not read a list of numbers as calls, and drops its marks with the calls', () => {
  expect(whole('pythonic', 'so [1, 2, 3].')).toEqual({ text: 'so [1, 2, 3].', calls: [] })
  expect(whole('pythonic', '<|python_start|>[f()]<|python_end|>')).toEqual({ text: '', calls: [['f', '{}']] })
})

test('pythonic converts a number of 25 digits to a string', () => {
  const digits = '1234567890123456789012345'
  expect(whole('pythonic', `[f(a=${digits})]`).calls).toEqual([['f', `{"a":"${digits}"}`]])
})

test('semicolons in strings do not split llama calls', () => {
  const input = '<|python_tag|>{"name":"a","parameters":{"t":"x; y"}}'
  expect(whole('llama', input).calls).toEqual([['a', '{"t":"x; y"}']])
})

test('prose after a llama call is text', () => {
  const input = '{"name":"a","parameters":{}} is how one calls.'
  const expected = { text: ' is how one calls.', calls: [['a', '{}']] }
  expect(whole('llama', input, kept)).toEqual(expected)
  expect(streamed('llama', [...input], kept)).toEqual({ ...expected, isWhole: true })
})

test('deepseek accepts only the type function', () => {
  const input = `${DEEPSEEK[0]}tool<｜tool▁sep｜>f\n\`\`\`json\n{}\n\`\`\`${DEEPSEEK[1]}`
  expect(whole('deepseek', input)).toEqual({ text: input, calls: [] })
})

test('deepseek wraps arguments that are not an object', () => {
  const input = `${DEEPSEEK[0]}function<｜tool▁sep｜>f\n\`\`\`json\n"x"\n\`\`\`${DEEPSEEK[1]}`
  expect(whole('deepseek', input).calls).toEqual([['f', '{"value":"x"}']])
})

test('deepseek31 reads the call after a broken one', () => {
  const input = `${DEEPSEEK[0]}x<｜tool▁sep｜>{bad<｜tool▁call▁end｜><｜tool▁call▁begin｜>y<｜tool▁sep｜>{}${DEEPSEEK[1]}`
  expect(whole('deepseek31', input).calls).toEqual([['y', '{}']])
})

test('DSML reads JSON if the tag declares it, and invalid JSON as a string', () => {
  const pair = (key: string, value: string) =>
    `${DSML}parameter name="${key}" string="false">${value}</｜DSML｜parameter>`
  const body = pair('a', '42') + pair('b', 'true') + pair('c', '{"d":[1]}') + pair('e', '{bad')
  const input = `${DSML}function_calls>${DSML}invoke name="f">${body}</｜DSML｜invoke></｜DSML｜function_calls>`
  expect(whole('deepseek32', input).calls).toEqual([['f', '{"a":42,"b":true,"c":{"d":[1]},"e":"{bad"}']])
})

test('DSML reads the invoke after one without a name', () => {
  const input = `${DSML}function_calls>${DSML}invoke name=""></｜DSML｜invoke>${DSML}invoke name="g"></｜DSML｜invoke></｜DSML｜function_calls>`
  expect(whole('deepseek32', input).calls).toEqual([['g', '{}']])
})

test.each([
  ['deepseek32', 'tool_calls'],
  ['deepseek_v4', 'function_calls'],
])('%s returns a block of %s as text', (name, block) => {
  const input = `${DSML}${block}>${DSML}invoke name="f"></｜DSML｜invoke></｜DSML｜${block}>`
  expect(whole(name, input)).toEqual({ text: input, calls: [] })
})

test('a name without its own line is a call in glm47 only', () => {
  const input = '<tool_call>ping</tool_call>'
  expect(whole('glm45_moe', input)).toEqual({ text: input, calls: [] })
  expect(whole('glm47_moe', input)).toEqual({ text: '', calls: [['ping', '{}']] })
})

test('glm keeps leading zeros of a string, and converts them to a number otherwise', () => {
  const input = '<tool_call>f\n<arg_key>a</arg_key><arg_value>007</arg_value></tool_call>'
  expect(whole('glm45_moe', input, { tools: withTypes('f', { a: 'string' }) }).calls).toEqual([
    ['f', '{"a":"007"}'],
  ])
  expect(whole('glm45_moe', input).calls).toEqual([['f', '{"a":7}']])
})

test('step3 reads calls without arguments', () => {
  const input =
    '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f"></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>'
  expect(whole('step3', input).calls).toEqual([['f', '{}']])
})

test('sarashina reads escapes and brackets in strings and never returns its mark', () => {
  const input = "Ok <|tool_calls|>[{'name': 'f', 'arguments': {'t': 'it\\'s [x'}}]"
  expect(whole('sarashina', input)).toEqual({ text: 'Ok', calls: [['f', '{"t":"it\'s [x"}']] })
  expect(whole('sarashina', 'Ok <|tool_calls|>none').text).toBe('Ok none')
})

test('kimik2 removes one prefix, and keeps dots and hyphens', () => {
  expect(whole('kimik2', kimi('functions.fs.read:0', '{}')).calls).toEqual([['fs.read', '{}']])
  expect(whole('kimik2', kimi('functions.functions.a-b:0', '{}')).calls).toEqual([['functions.a-b', '{}']])
})

test('kimik2 keeps the formatting of JSON', () => {
  const body = JSON.stringify({ a: [1, { b: 2 }] }, null, 2)
  expect(whole('kimik2', kimi('functions.f:0', body)).calls).toEqual([['f', body]])
})

const channel = (attributes: string, body = '') =>
  `<|open|>call ${attributes}<|sep|>${body}<|close|>call<|sep|>`
const tools = (body: string) => `<|open|>tools<|sep|>${body}<|close|>tools<|sep|>`

test('kimi_k3 orders calls by position, and accepts a bracket in an attribute', () => {
  const input = tools(channel('tool="a<b" index="7"') + channel('tool="c" index="7"') + channel('tool="d"'))
  expect(whole('kimi_k3', input).calls.map(([name]) => name)).toEqual(['a<b', 'c', 'd'])
})

test('kimi_k3 reads an invalid number as a string', () => {
  const argument = '<|open|>argument key="a" type="number"<|sep|>many<|close|>argument<|sep|>'
  expect(whole('kimi_k3', tools(channel('tool="f"', argument))).calls).toEqual([['f', '{"a":"many"}']])
})

const frame = (name: string) => `<|content_invoke_tool_json|>{"name":"${name}","args":{}}<|end_message|>`

test('inkling drops an undeclared call with its frame, and does not count it', () => {
  const input = `<|message_model|>x${frame('x')}<|message_model|>f${frame('f')}`
  const declared = { tools: withTypes('f', {}), unknownTools: 'text' as const }
  expect(streamed('inkling', [input], declared)).toEqual({ text: '', calls: [['f', '{}']], isWhole: true })
  const started: [number, string][] = []
  const format = formatOf('inkling')
  const sink = {
    text: () => {},
    callStarted: (...call: [number, string]) => started.push(call),
    callArguments: () => {},
    callDone: () => {},
  }
  const reader = format.open(openOutput(format, sink, declared))
  for (const char of input) reader.push(char)
  reader.end()
  expect(started).toEqual([[0, 'f']])
})

test('inkling returns both texts around a broken frame and no part of the frame', () => {
  const input =
    'a<|content_invoke_tool_json|>{"name":"x","args":[1]}<|end_message|><|content_text|>b<|end_message|>'
  expect(whole('inkling', input)).toEqual({ text: 'ab', calls: [] })
})

test('minimax reads two invokes of one wrapper, declared or not', () => {
  const input = minimax('<invoke name="a"></invoke><invoke name="b"></invoke>')
  const expected = {
    text: '',
    calls: [
      ['a', '{}'],
      ['b', '{}'],
    ],
  }
  expect(whole('minimax_m2', input, { tools: withTypes('a', {}) })).toEqual(expected)
  expect(streamed('minimax_m2', [...input], kept)).toEqual({ ...expected, isWhole: true })
})

test('minimax decodes entities once', () => {
  const input = minimax('<invoke name="f"><parameter name="a">&amp;quot;</parameter></invoke>')
  expect(whole('minimax_m2', input).calls).toEqual([['f', '{"a":"&quot;"}']])
})

test('cohere reads past an end mark in a string and trims its text', () => {
  const input =
    '<|START_RESPONSE|> Hi. <|END_RESPONSE|>\n<|START_ACTION|>[{"tool_call_id":"0","tool_name":"f","parameters":{"t":"<|END_ACTION|>"}}]<|END_ACTION|>\n'
  expect(whole('cohere', input)).toEqual({ text: 'Hi.', calls: [['f', '{"t":"<|END_ACTION|>"}']] })
})

test('cohere with an unterminated string is text', () => {
  const input = '<|START_ACTION|>{"tool_name":"f","parameters":{"t":"x<|END_ACTION|>'
  expect(whole('cohere', input)).toEqual({ text: input, calls: [] })
})

test('passthrough returns the examples of every format as text', () => {
  for (const { input } of examples) expect(whole('passthrough', input)).toEqual({ text: input, calls: [] })
})

test.each([
  ['json', '{"name":"'],
  ['llama', '{"name":"'],
  ['mistral', '[TOOL_CALLS] [{"name":"'],
  ['qwen', '<tool_call>\n{"name":"'],
  ['cohere', '<|START_ACTION|>{"tool_name":"'],
  ['inkling', '<|content_invoke_tool_json|>{"name":"'],
])('%s sends no name before it is complete', (name, input) => {
  for (const rest of ['', 'look'])
    for (const chunks of [[input + rest], [...input, ...rest]])
      expect(streamed(name, chunks, kept).calls).toEqual([])
})

test.each(callWriters)(
  'text and three calls of $format in one chunk are emitted in order',
  ({ format, write }) => {
    const calls: WrittenCall[] = [
      { name: 'a', args: [['x', 1]] },
      { name: 'b', args: [] },
      { name: 'c', args: [] },
    ]
    const told: string[] = []
    const output = formatOf(format)
    const sink = {
      text: (delta: string) => told.push(`text ${delta.trim()}`),
      callStarted: (index: number, name: string) => told.push(`${index} ${name}`),
      callArguments: (_: number, delta: string) => told.push(delta.replaceAll(' ', '')),
      callDone: (_: number, isComplete: boolean) => told.push(`whole: ${isComplete}`),
    }
    const reader = output.open(openOutput(output, sink, { tools: toolsOf(calls) }))
    reader.push(`Hi ${write(calls)}`)
    reader.end()
    const [first, ...rest] = told.filter((step) => step !== 'text ')
    const joined = rest.join('').replaceAll('whole: true', ';')
    expect([first, joined]).toEqual(['text Hi', '0 a{"x":1};1 b{};2 c{};'])
  },
)

test('calls without arguments have an empty object', () => {
  const input = xml('a') + xml('b') + xml('c')
  expect(streamed('qwen_xml', [...input]).calls).toEqual([
    ['a', '{}'],
    ['b', '{}'],
    ['c', '{}'],
  ])
})

test.each([
  ['qwen_xml', xml('f', ['a', '}'], ['b', '{'])],
  [
    'minimax_m2',
    minimax('<invoke name="f"><parameter name="a">}</parameter><parameter name="b">{</parameter></invoke>'),
  ],
  [
    'step3',
    '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="f"><steptml:parameter name="a">}</steptml:parameter><steptml:parameter name="b">{</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>',
  ],
])('braces in values of %s are data', (name, input) => {
  expect(streamed(name, [...input]).calls).toEqual([['f', '{"a":"}","b":"{"}']])
})

const jsonWriters = callWriters.filter(({ carries }) => carries === 'json')
/** A call whose only argument has the given raw value. */
const withRaw = ({ write }: (typeof callWriters)[number], raw: string) =>
  write([{ name: 'f', args: [['a', '@@']] }]).replace('"@@"', raw)

test.each(jsonWriters)('split surrogate escapes and surrogate pairs survive in $format', (writer) => {
  const raw = '"\\ud83d\\ude00😀"'
  const input = withRaw(writer, raw)
  for (let at = 0; at < input.length; at++)
    expect(streamed(writer.format, [input.slice(0, at), input.slice(at)]).calls).toEqual([
      ['f', `{"a":${raw}}`],
    ])
})

test.each(jsonWriters)('numbers in $format keep their notation', (writer) => {
  for (const number of ['18446744073709551616', '1e400', '-0', '1.0', '0.1e-7', '9007199254740993']) {
    const input = withRaw(writer, number)
    for (const chunks of [[input], [...input]])
      expect(streamed(writer.format, chunks).calls).toEqual([['f', `{"a":${number}}`]])
  }
})

test.each(jsonWriters)('keys of $format keep their order', ({ format, write }) => {
  const args = ['10', '2', '__proto__', 'constructor', ''].map((key, at) => [key, at] as const)
  const written = '{"10":0,"2":1,"__proto__":2,"constructor":3,"":4}'
  const input = write([{ name: 'f', args }])
  for (const chunks of [[input], [...input]]) expect(streamed(format, chunks).calls).toEqual([['f', written]])
})

test('the end-of-sentence token never reaches arguments', () => {
  const input = `${DSML}function_calls>${DSML}invoke name="f">${DSML}parameter name="a" string="true">x<｜end▁of▁sentence｜></｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>`
  expect(streamed('deepseek32', [...input]).calls).toEqual([['f', '{"a":"x"}']])
})

test.each(['json', 'llama', 'pythonic', 'xlam'])('%s returns JSON text completely', (name) => {
  const answer = '{"city":"Oslo","list":[1,{"name":"x"}]}'
  expect(streamed(name, [...answer])).toEqual({ text: answer, calls: [], isWhole: true })
})

test('text that is neither a call nor white space between calls is kept', () => {
  const input = 'a<tool_call>{"name":"f"}</tool_call>\n<tool_call>{"name":"g"}</tool_call>\nand then b'
  expect(streamed('qwen', [...input], kept)).toEqual({
    text: 'a\nand then b',
    calls: [
      ['f', '{}'],
      ['g', '{}'],
    ],
    isWhole: true,
  })
})

test('a truncated call keeps its partial arguments', () => {
  expect(streamed('qwen', ['<tool_call>{"name":"f","arguments":{"a":"x'], kept)).toEqual({
    text: '',
    calls: [['f', '{"a":"x']],
    isWhole: false,
  })
  expect(streamed('qwen', ['<tool_call>{"name":"f'], kept).text).toBe('<tool_call>{"name":"f')
})

test('a raw line break inside a JSON string is escaped', () => {
  expect(whole('qwen', '<tool_call>{"name":"f","arguments":{"a":"x\ny"}}</tool_call>').calls).toEqual([
    ['f', '{"a":"x\\ny"}'],
  ])
})

test('calls beyond the limit are text', () => {
  const limits = { maxCalls: 2, maxArgumentChars: 1_000 }
  const block = '<tool_call>{"name":"f"}</tool_call>'
  expect(streamed('qwen', [block.repeat(3)], { limits, ...kept })).toEqual({
    text: block,
    calls: [
      ['f', '{}'],
      ['f', '{}'],
    ],
    isWhole: true,
  })
})

test.each([40, 126])('JSON nested %s deep is read', (depth) => {
  const value = `${'['.repeat(depth)}${']'.repeat(depth)}`
  expect(whole('json', `{"name":"f","arguments":{"a":${value}}}`).calls).toEqual([['f', `{"a":${value}}`]])
})

test('JSON nested 200 deep is text', () => {
  const value = `${'['.repeat(200)}${']'.repeat(200)}`
  expect(whole('json', `{"name":"f","arguments":{"a":${value}}}`).calls).toEqual([])
})
