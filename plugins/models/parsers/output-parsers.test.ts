import { expect, test, vi } from 'vitest'
import type { ChatTool, OpenOptions, OutputConstraint, OutputParserRequest } from '#kernel'
import { OutputCollector, parseWhole } from '../../../test/support/parsers/output-collector.ts'
import { OutputParsersOf } from './output-parsers.ts'

function service(settings: { toolParser?: string; reasoningParser?: string } = {}) {
  const onChoice = vi.fn()
  const onTemplate = vi.fn()
  const onUnknown = vi.fn()
  const parsers = new OutputParsersOf({
    toolParser: null,
    reasoningParser: null,
    limits: { maxCalls: 128, maxArgumentChars: 1_000_000 },
    onChoice,
    onTemplate,
    onUnknown,
    ...settings,
  })
  return { parsers, onChoice, onTemplate, onUnknown }
}

const tool = (name: string, parameters: object): ChatTool => ({
  type: 'function',
  function: { name, parameters },
})
const DIM_SCHEMA = { type: 'object', properties: { level: { type: 'integer' } } }
const dim = tool('dim', DIM_SCHEMA)
const ping = tool('ping', {})
/** The schema of a constraint. */
function shapeOf(constraint: OutputConstraint | null) {
  return JSON.parse(
    service().parsers.engineConstraint('vllm', constraint ?? { kind: 'regex', pattern: '""' })?.text ?? '',
  )
}
const CALL = '<tool_call>{"name":"dim","arguments":{"level":3}}</tool_call>'

function parserOf(request: Partial<OutputParserRequest>) {
  return service().parsers.parserFor({ model: 'Qwen/Qwen3-8B', tools: [dim, ping], ...request })
}

function read(request: Partial<OutputParserRequest>, chunks: readonly string[], options?: OpenOptions) {
  const collector = new OutputCollector()
  const stream = parserOf(request).open(collector, options)
  for (const chunk of chunks) stream.push(chunk)
  stream.end()
  return collector.output()
}

test('calls after reasoning are read, calls inside it are not', () => {
  const input = `<think>shall I ${CALL}?</think>\n\nYes. ${CALL}`
  for (const chunks of [[input], [...input]]) {
    const { reasoning, text, toolCalls } = read({}, chunks)
    expect(reasoning).toBe(`shall I ${CALL}?`)
    expect(text).toBe('\n\nYes. ')
    expect(toolCalls).toMatchObject([{ name: 'dim', arguments: '{"level":3}' }])
  }
})

test('white space between reasoning and a call is not content', () => {
  expect(read({}, [`<think>${CALL}</think>\n\n${CALL}\n`])).toMatchObject({ reasoning: CALL, text: '' })
})

test('with separatesReasoning false reasoning stays in the text', () => {
  const input = '<think>a</think>b'
  expect(read({ separatesReasoning: false }, [input])).toMatchObject({ reasoning: '', text: input })
})

test.each([
  ['gemma4', '<|channel>thought\nhm<channel|>b', '<|channel>thought\nhm<channel|>b'],
  ['mistral_v13', '[THINK]hm[/THINK]b', '[THINK]hm[/THINK]b'],
  ['inkling', '<|content_thinking|>hm<|end_message|><|content_text|>b<|end_message|>', 'hmb'],
  [
    'kimi_k3',
    '<|open|>think<|sep|>hm<|close|>think<|sep|><|open|>response<|sep|>b<|close|>response<|sep|>',
    'hmb',
  ],
])('reasoning of %s is text if not separated, without its frames', (name, input, text) => {
  const request = { reasoningParser: name, separatesReasoning: false, tools: [] }
  expect(parserOf(request).needsSpecialTokens).toBe(true)
  for (const chunks of [[input], [...input]])
    expect(read(request, chunks)).toMatchObject({ reasoning: '', text })
})

test('a forced call after reasoning is read also if reasoning is not separated', () => {
  const request = {
    model: 'deepseek-r1',
    separatesReasoning: false,
    toolChoice: { mode: 'function', name: 'dim' },
  } as const
  const output = read(request, ['hm</think>{"level":3}'], { constraintWaits: true })
  expect(output).toMatchObject({ reasoning: '', text: 'hm', toolCalls: [{ arguments: '{"level":3}' }] })
})

test('with thinking off the text starts at the first byte', () => {
  const request = { model: 'deepseek-r1', isReasoningOpen: false }
  expect(read(request, ['plain'])).toMatchObject({ reasoning: '', text: 'plain' })
})

test('the wrappers of cohere are not text, with and without tools', () => {
  const input = '<|START_THINKING|>m<|END_THINKING|><|START_RESPONSE|>n<|END_RESPONSE|>'
  for (const tools of [[], [dim]])
    for (const chunks of [[input], [...input]])
      expect(read({ model: 'CohereLabs/command-a-03-2025', tools }, chunks)).toMatchObject({
        reasoning: 'm',
        text: 'n',
      })
})

test('choices of one request share no state', () => {
  const parser = parserOf({})
  const [one, two] = [new OutputCollector(), new OutputCollector()]
  const [first, second] = [parser.open(one), parser.open(two)]
  for (const [index, char] of [...CALL].entries()) {
    first.push(char)
    if (index % 2 === 0) second.push(`${index},`)
  }
  first.end()
  second.end()
  expect(one.output().toolCalls).toHaveLength(1)
  expect(two.output().text).toMatch(/^0,2,4,/)
  expect(first.toolCalls).toBe(1)
})

test('tool_choice none reads no calls', () => {
  expect(read({ toolChoice: { mode: 'none' } }, [CALL])).toMatchObject({ text: CALL, toolCalls: [] })
})

test('a required call is constrained to an array, which is read as calls', () => {
  const request = { toolChoice: { mode: 'required' } } as const
  const { toolConstraint } = parserOf(request)
  expect(toolConstraint?.kind).toBe('json_schema')
  expect(shapeOf(toolConstraint)).toMatchObject({
    type: 'array',
    minItems: 1,
    items: { anyOf: [{ properties: { name: { enum: ['dim'] } } }, { required: ['name', 'parameters'] }] },
  })
  const input = '[{"name":"dim","parameters":{"level":3}},{"name":"ping","parameters":{}}]'
  expect(read(request, [...input])).toMatchObject({
    text: '',
    toolCalls: [{ name: 'dim' }, { name: 'ping' }],
  })
  const cutOff = input.slice(0, 60)
  expect(parseWhole(parserOf(request), cutOff)).toMatchObject({
    text: ',{"name":"ping","par',
    toolCalls: [{ name: 'dim' }],
  })
})

test('with a named call the output becomes its arguments', () => {
  const request = { toolChoice: { mode: 'function', name: 'dim' } } as const
  expect(shapeOf(parserOf(request).toolConstraint)).toEqual(DIM_SCHEMA)
  expect(read(request, [...'{"level": 3}'])).toMatchObject({
    text: '',
    toolCalls: [{ name: 'dim', arguments: '{"level":3}' }],
  })
  expect(read(request, ['no JSON'])).toMatchObject({ text: 'no JSON', toolCalls: [] })
})

test('equal definitions are merged, conflicting ones rejected', () => {
  const withDefinition = (name: string, type: string) =>
    tool(name, { $defs: { X: { type } }, properties: { x: { $ref: '#/$defs/X' } } })
  const demand = (...tools: ChatTool[]) =>
    shapeOf(parserOf({ tools, toolChoice: { mode: 'required' } }).toolConstraint)
  expect(demand(withDefinition('a', 'string'), withDefinition('b', 'string')).$defs).toEqual({
    X: { type: 'string' },
  })
  expect(() => demand(withDefinition('a', 'string'), withDefinition('b', 'number'))).toThrow(/conflicting/)
})

test('a named tool must exist, and a required call needs tools', () => {
  expect(() => parserOf({ toolChoice: { mode: 'function', name: 'other' } })).toThrow(/'other'/)
  expect(() => parserOf({ tools: [], toolChoice: { mode: 'required' } })).toThrow(/no tools/)
})

test('a forced call and a response format exclude each other', () => {
  const { parsers } = service()
  const parser = parsers.parserFor({ model: 'qwen3', tools: [dim], toolChoice: { mode: 'required' } })
  const { toolConstraint } = parser
  expect(parsers.answerConstraint(parser, { toolConstraint })).toBe(toolConstraint)
  const constraint = { kind: 'regex', pattern: 'a+' } as const
  expect(parsers.answerConstraint(parser, { constraint })).toBe(constraint)
  expect(() => parsers.answerConstraint(parser, { toolConstraint, constraint })).toThrow(/combined/)
  expect(parsers.answerConstraint(parser, {})).toBeNull()
})

test('each runtime has its own constraint names', () => {
  const { parsers } = service()
  const grammar = { kind: 'ebnf', grammar: 'root ::= "a"' } as const
  expect(parsers.engineConstraint('vllm', grammar)).toEqual({ name: 'grammar', text: grammar.grammar })
  expect(parsers.engineConstraint('sglang', grammar)?.name).toBe('ebnf_grammar')
  expect(parsers.engineConstraint('trtllm', { kind: 'json_object' })).toEqual({
    name: 'GUIDE_TYPE_JSON_SCHEMA',
    text: '{"type":"object"}',
  })
  expect(parsers.engineConstraint('mlx', grammar)).toBeNull()
})

test('a forced call of a reasoning model is not taken for reasoning', () => {
  const request = { model: 'deepseek-r1-distill-qwen-7b', toolChoice: { mode: 'required' } } as const
  const input = '[{"name":"dim","parameters":{}}]'
  expect(read(request, [input])).toMatchObject({ reasoning: '', toolCalls: [{ name: 'dim' }] })
  expect(read(request, [`hm</think>${input}`], { constraintWaits: true })).toMatchObject({
    reasoning: 'hm',
    toolCalls: [{ name: 'dim' }],
  })
})

test('an engine that ignores the constraint delay is read too, for any split of the text', () => {
  const named = { toolChoice: { mode: 'function', name: 'dim' } } as const
  const request = { model: 'deepseek-r1', isReasoningOpen: true }
  const waits = { constraintWaits: true }
  const call = '\n{ "level": 3}'
  for (const chunks of [[call], [...call]])
    expect(read({ ...request, ...named }, chunks, waits)).toMatchObject({
      reasoning: '',
      toolCalls: [{ arguments: '{"level":3}' }],
    })
  const required = '[{"name":"dim","parameters":{}}]'
  expect(read({ ...request, toolChoice: { mode: 'required' } }, [...required], waits)).toMatchObject({
    reasoning: '',
    toolCalls: [{ name: 'dim' }],
  })
  const text = '[Rome] {x}</think>{"level":3}'
  for (const chunks of [[text], [...text]])
    expect(read({ ...request, ...named }, chunks, waits)).toMatchObject({
      reasoning: '[Rome] {x}',
      toolCalls: [{ arguments: '{"level":3}' }],
    })
  expect(read({ ...request, ...named }, [' '], waits)).toMatchObject({ reasoning: ' ', toolCalls: [] })
})

test.each([
  { kind: 'json_schema', name: 'a', schema: {} },
  { kind: 'json_object' },
  { kind: 'regex', pattern: '.+' },
] as const)('output constrained by $kind from its first token is not reasoning', (constraint) => {
  const request = { model: 'deepseek-r1', isReasoningOpen: true, constraint }
  expect(read(request, ['{"a":1}'])).toMatchObject({ reasoning: '', text: '{"a":1}' })
  const waiting = read(request, ['hm</think>{"a":1}'], { constraintWaits: true })
  expect(waiting).toMatchObject({ reasoning: 'hm', text: '{"a":1}' })
})

test.each([
  ['mistral', ['[TOOL_CALLS]'], '[TOOL_CALLS] ['],
  [
    'kimik2',
    ['<|tool_calls_section_begin|>', '<|tool_call_begin|>'],
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.dim:0<|tool_call_argument_begin|>',
  ],
  ['inkling', ['<|content_invoke_tool_json|>'], '<|content_invoke_tool_json|>{"name":"dim","args":'],
  [
    'kimi_k3',
    ['<|open|>tools<|sep|>', '<|close|>think<|sep|>', '<|close|>response<|sep|>'],
    '<|open|>tools<|sep|>',
  ],
  [
    'harmony',
    ['<|start|>assistant<|channel|>commentary', '<|channel|>commentary'],
    '<|start|>assistant<|channel|>commentary to=functions.dim<|constrain|>json<|message|>',
  ],
])('%s is constrained with its own marks', (toolParser, triggers, begin) => {
  const named = parserOf({ toolParser, toolChoice: { mode: 'function', name: 'dim' } }).toolConstraint
  expect(named?.kind).toBe('structural_tag')
  const { format } = shapeOf(named)
  expect(format).toMatchObject({
    type: 'triggered_tags',
    triggers,
    at_least_one: true,
    stop_after_first: true,
  })
  expect(format.tags[0].begin).toBe(begin)
  const required = shapeOf(parserOf({ toolParser, toolChoice: { mode: 'required' } }).toolConstraint)
  expect(required.format.stop_after_first).toBeUndefined()
})

test('call ids are random, or numbered as in the model family', () => {
  const ids = (model: string, text: string) =>
    read({ model, earlierToolCalls: 2 }, [text]).toolCalls.map(({ id }) => id)
  expect(ids('qwen3', CALL)[0]).toMatch(/^call_[0-9a-f]{24}$/)
  const kimi =
    '</think><|tool_calls_section_begin|><|tool_call_begin|>functions.dim:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>'
  expect(ids('moonshotai/Kimi-K2-Thinking', kimi)).toEqual(['functions.dim:2'])
  const k3 = '<|open|>tools<|sep|><|open|>call tool="dim"<|sep|><|close|>call<|sep|><|close|>tools<|sep|>'
  expect(ids('moonshotai/Kimi-K3', k3)).toEqual(['dim:0'])
})

test('an undeclared call of inkling is dropped with its frame, other formats return it', () => {
  const frame = (name: string) =>
    `<|message_model|>${name}<|content_invoke_tool_json|>{"name":"${name}","args":{}}<|end_message|>`
  const input = `${frame('other')}<|content_text|>Hi.<|end_message|>${frame('dim')}`
  for (const chunks of [[input], [...input]]) {
    const { text, toolCalls } = read({ toolParser: 'inkling', reasoningParser: 'inkling' }, chunks)
    expect([text, toolCalls.map(({ name }) => name)]).toEqual(['Hi.', ['dim']])
  }
  const other = '<tool_call>{"name":"other","arguments":{}}</tool_call>'
  expect(read({}, [other]).toolCalls).toMatchObject([{ name: 'other' }])
})

test('without parallel calls only the first is returned', () => {
  expect(read({ allowsParallelCalls: false }, [CALL + CALL]).toolCalls).toHaveLength(1)
})

test('special tokens are kept for formats with marks, not for a schema', () => {
  expect(parserOf({}).needsSpecialTokens).toBe(true)
  expect(parserOf({ toolChoice: { mode: 'none' } }).needsSpecialTokens).toBe(false)
  expect(parserOf({ toolChoice: { mode: 'required' } }).needsSpecialTokens).toBe(false)
  expect(parserOf({ model: 'Kimi-K3', toolChoice: { mode: 'none' } }).needsSpecialTokens).toBe(true)
})

test('an explicit name overrides the setting, the setting overrides detection', () => {
  const { parsers, onChoice } = service({ toolParser: 'llama' })
  expect(parsers.parserFor({ model: 'qwen3' }).toolParser).toBe('llama')
  expect(parsers.parserFor({ model: 'qwen3', toolParser: 'json' }).toolParser).toBe('json')
  expect(onChoice).toHaveBeenCalledTimes(1)
  expect(() => parsers.parserFor({ model: 'x', reasoningParser: 'nope' })).toThrow(/'nope'/)
})

test.each([
  ['qwen25', 'qwen3-thinking', 'qwen', 'qwen3_thinking'],
  ['deepseekv3', 'deepseek-r1', 'deepseek', 'deepseek_r1'],
  ['kimi_k2', 'kimi_k2', 'kimik2', 'kimi_k25'],
  ['gpt-oss', 'gpt-oss', 'harmony', 'harmony'],
  [null, 'gpt-oss', 'harmony', 'harmony'],
  ['hermes', 'qwen3', 'qwen', 'qwen3'],
])("the engine's parser names %s and %s select the matching formats", (tool, reasoning, ...names) => {
  const { parsers, onUnknown } = service({ toolParser: 'json' })
  const parser = parsers.parserFor({ model: 'x', workerToolParser: tool, workerReasoningParser: reasoning })
  expect([parser.toolParser, parser.reasoningParser]).toEqual(names)
  expect(onUnknown).not.toHaveBeenCalled()
})

test('an unknown parser name of the worker is ignored, and reported once', () => {
  const { parsers, onUnknown } = service({ reasoningParser: 'kimi' })
  const request = { model: 'qwen3', workerToolParser: 'gigachat9', workerReasoningParser: 'gigachat9' }
  for (let nth = 0; nth < 3; nth++) {
    const parser = parsers.parserFor(request)
    expect([parser.toolParser, parser.reasoningParser]).toEqual(['qwen', 'kimi'])
  }
  expect(onUnknown.mock.calls).toEqual([
    ['tool', 'gigachat9', 'qwen3'],
    ['reasoning', 'gigachat9', 'qwen3'],
  ])
})

const template = {
  start_anchor: '@',
  fields: { thinking: { open: '(', close: ')' }, tool_calls: { open: '{' } },
}

test.each([
  ['no parser is configured', {}, { responseTemplate: template }, ['hf', 'hf']],
  [
    'the worker selects it',
    {},
    { responseTemplate: template, workerToolParser: 'hf', model: 'qwen3' },
    ['hf', 'hf'],
  ],
  [
    'the settings select it',
    { reasoningParser: 'hf' },
    { responseTemplate: template, model: 'qwen3' },
    ['hf', 'hf'],
  ],
  [
    'the tool parser is a different one',
    { toolParser: 'json', reasoningParser: 'hf' },
    { responseTemplate: template, model: 'qwen3' },
    ['json', 'qwen3'],
  ],
  ['a different one is configured', { toolParser: 'json' }, { responseTemplate: template }, ['json', null]],
  [
    'the model id selects a different one',
    {},
    { responseTemplate: template, model: 'qwen3' },
    ['qwen', 'qwen3'],
  ],
  ['there is no template', { toolParser: 'hf' }, { model: 'qwen3' }, ['qwen', 'qwen3']],
  [
    'it has no calls',
    {},
    { responseTemplate: { start_anchor: '@', fields: { thinking: { open: '(', close: ')' } } } },
    [null, 'hf'],
  ],
])('the format selection with a response template, if %s', (_where, settings, request, names) => {
  const { parsers } = service(settings)
  const parser = parsers.parserFor({ model: 'x', ...request })
  expect([parser.toolParser, parser.reasoningParser]).toEqual(names)
})

test('an unusable response template is reported once, with the reason', () => {
  const { parsers, onTemplate } = service({ toolParser: 'hf' })
  for (let nth = 0; nth < 3; nth++) {
    parsers.parserFor({ model: 'without' })
    parsers.parserFor({ model: 'bad', responseTemplate: { fields: { content: {} } } })
  }
  expect(onTemplate.mock.calls).toEqual([
    ['without', 'its tokenizer has none'],
    ['bad', 'it has neither start_anchor nor start_anchor_pattern'],
  ])
})

test('a JSON answer of Harmony is framed by its channels', () => {
  const { parsers } = service()
  const parser = parsers.parserFor({ model: 'gpt-oss-20b' })
  const constraint = parsers.answerConstraint(parser, { constraint: { kind: 'json_object' } })
  expect(shapeOf(constraint).format).toMatchObject({
    triggers: ['<|channel|>analysis', '<|channel|>final'],
    tags: [{ end: '<|end|>' }, { content: { json_schema: { type: 'object' } } }],
  })
})

test('only allowed tools are part of the constraint', () => {
  const allowed = (names: string[]) => parserOf({ toolChoice: { mode: 'allowed', names, isRequired: true } })
  expect(shapeOf(allowed(['ping']).toolConstraint).items.anyOf).toHaveLength(1)
  expect(() => allowed(['other'])).toThrow(/'other'/)
})
