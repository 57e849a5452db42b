/** Output parsed by response templates, compared with the results of the library that introduced them. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { ChatTool, OutputParserRequest, OutputSink, ToolChoice } from '#kernel'
import { runs } from '../../../../test/support/thorough.ts'
import { OutputParsersOf } from '../output-parsers.ts'
import { loadResponseTemplate } from './response-template.ts'

type Answer = readonly [
  template: string,
  prompt: string,
  text: string,
  reasoning: string,
  content: string,
  calls: readonly (readonly [name: string, written: string])[],
]

const { templates, tools, answers } = JSON.parse(
  readFileSync(new URL('../../../../test/fixtures/parsers/response-templates.json', import.meta.url), 'utf8'),
) as { templates: Record<string, object>; tools: ChatTool[]; answers: Answer[] }

const parsers = new OutputParsersOf({
  toolParser: 'hf',
  reasoningParser: null,
  limits: { maxCalls: 20, maxArgumentChars: 2_000_000 },
  onChoice: () => {},
  onTemplate: (_model, reason) => {
    throw new Error(reason)
  },
  onUnknown: () => {},
})

class Reading implements OutputSink {
  thought = ''
  content = ''
  readonly calls: [string, string][] = []

  reasoning(delta: string): void {
    this.thought += delta
  }

  text(delta: string): void {
    this.content += delta
  }

  toolCallStarted(index: number, _id: string, name: string): void {
    expect(index).toBe(this.calls.length)
    this.calls.push([name, ''])
  }

  toolCallArguments(index: number, delta: string): void {
    this.calls[index][1] += delta
  }

  toolCallDone(_index: number, isComplete: boolean): void {
    expect(isComplete).toBe(true)
  }
}

type Asked = Partial<OutputParserRequest> & { readonly isFinished?: boolean }

function read(template: object, pieces: readonly string[], { isFinished = true, ...asked }: Asked = {}) {
  const parser = parsers.parserFor({ model: 'm', tools, responseTemplate: template, ...asked })
  const sink = new Reading()
  const stream = parser.open(sink)
  for (const piece of pieces) stream.push(piece)
  stream.end(isFinished)
  return { reasoning: sink.thought, content: sink.content, calls: sink.calls }
}

/** White space around texts depends on later input in a stream, so it is trimmed for the comparison. */
function trimmed({ reasoning, content, calls }: ReturnType<typeof read>) {
  return [reasoning.trim(), content.trim(), calls.map(([name, written]) => [name, JSON.parse(written)])]
}

test.each(answers)(
  'parsers 2 of November 2026, hf: %s after %j: %j',
  (name, prompt, text, reasoning, content, calls) => {
    const expected = [reasoning.trim(), content.trim(), calls.map(([f, written]) => [f, JSON.parse(written)])]
    expect(trimmed(read(templates[name], [text], { prompt }))).toEqual(expected)
  },
)

const anyAnswer = fc
  .tuple(
    fc.array(fc.constantFrom(...answers), { minLength: 1, maxLength: 3 }),
    fc.nat(400),
    fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
  )
  .map(([rows, cut, sizes]) => ({
    template: templates[rows[0][0]],
    prompt: rows[0][1],
    // The text may end anywhere.
    text: [...rows.map((row) => row[2]).join('')].slice(0, cut),
    sizes,
  }))

test('6.1: the result does not depend on the split of the text', () => {
  fc.assert(
    fc.property(anyAnswer, fc.boolean(), ({ template, prompt, text, sizes }, isFinished) => {
      const pieces: string[] = []
      const rest = [...text]
      for (const size of sizes) {
        if (rest.length === 0) break
        pieces.push(rest.splice(0, size).join(''))
      }
      const whole = read(template, [text.join('')], { prompt, isFinished })
      expect(read(template, pieces, { prompt, isFinished })).toEqual(whole)
    }),
    { numRuns: runs(1_000) },
  )
})

test('6.1: every word is reasoning, answer or argument', () => {
  const words = fc.array(
    fc.constantFrom(
      '<think>',
      '</think>',
      '\n<call>',
      '</call>',
      '{"name":"g","arguments":{"v":"',
      '"}}',
      '[[end]]',
    ),
    { maxLength: 12 },
  )
  fc.assert(
    fc.property(words, (marks) => {
      const text = marks.map((mark, at) => `${mark}word${at}`).join('')
      const { reasoning, content, calls } = read(templates.tags, [text])
      const all = reasoning + content + JSON.stringify(calls)
      for (const at of marks.keys()) expect(all).toContain(`word${at}`)
    }),
  )
})

describe('an invalid call is text, with its marks, if it', () => {
  test.each([
    ['is not JSON', 'a <call>{"name":</call> b'],
    ['has no name', '<call>{"arguments":{}}</call>'],
    ['has an empty name', '<call>{"name":""}</call>'],
    ['has arguments that are not an object', '<call>{"name":"f","arguments":[1]}</call>'],
    ['is nested too deeply', `<call>${'['.repeat(5_000)}${']'.repeat(5_000)}</call>`],
    [
      'exceeds the maximum length of a call',
      `<call>{"name":"f","arguments":{"b":"${'x'.repeat(2_000_001)}"}}</call>`,
    ],
    ['has a name above the maximum length', `<call>{"name":"${'n'.repeat(300)}"}</call>`],
  ])('%s', (_what, text) => {
    expect(read(templates.tags, [text])).toEqual({ reasoning: '', content: text, calls: [] })
  })

  test('is truncated', () => {
    const text = '<tool><fn=f><arg=a>1</arg>'
    expect(read(templates.xml, [text], { isFinished: false }).content).toBe(text)
    // A model that ended with its own stop token may have meant that as the end of the call.
    expect(read(templates.xml, [text]).calls).toEqual([['f', '{"a":1}']])
  })

  test('exceeds the maximum number of calls', () => {
    const call = '<call>{"name":"f"}</call>'
    const { calls, content } = read(templates.tags, [call.repeat(22)])
    expect([calls.length, content]).toEqual([20, call.repeat(2)])
  })

  test('occurs with tool_choice none', () => {
    const text = '<call>{"name":"f"}</call>'
    expect(read(templates.tags, [text], { toolChoice: { mode: 'none' } as ToolChoice }).content).toBe(text)
  })
})

test('a part may end where the next one starts', () => {
  const template = {
    start_anchor: '[/INST]',
    fields: {
      content: {},
      tool_calls: {
        open_pattern: '\\[TOOL_CALLS\\](?P<name>\\w+)\\[ARGS\\]',
        close_pattern: '(?=\\[TOOL_CALLS\\]|</s>)',
        repeats: true,
        content: 'json',
        transform: { function: { name: '{name}', arguments: '{content}' } },
      },
    },
  }
  const text = 'Well.[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{"b": [2]}'
  const expected = {
    reasoning: '',
    content: 'Well.',
    calls: [
      ['f', '{"a":1}'],
      ['g', '{"b":[2]}'],
    ],
  }
  expect(read(template, [text])).toEqual(expected)
  expect(read(template, [...text])).toEqual(expected)
})

test('arguments may exceed the length limit of marks', () => {
  const long =
    'x'
      .repeat(9_000)
      .match(/.{1,9}/g)
      ?.join(' ') ?? ''
  const text = `<tool><fn=g><arg=z>${long}</arg></fn></tool>`
  expect(read(templates.xml, [text]).calls).toEqual([['g', JSON.stringify({ z: long })]])
})

describe('takes linear time', () => {
  test.each([
    [
      'many parts',
      { thinking: { open: '<t>', close: '</t>' }, other: { open: '<z>', close: '</z>' } },
      '<t>x</t>',
      12_000,
    ],
    [
      'strings without an end',
      {
        tool_calls: {
          open: '<z>',
          close: '</z>',
          content: 'json',
          content_args: { string_delims: [['<q>', '</q>']] },
        },
      },
      '<q>',
      1_000_000,
    ],
  ])('%s', (_what, fields, piece, count) => {
    const startedAt = performance.now()
    read({ start_anchor: '@', fields }, [
      `<z>`,
      piece.repeat(count / piece.length),
      '</z>',
      piece.repeat(count),
    ])
    // Quadratic work would take minutes.
    expect(performance.now() - startedAt).toBeLessThan(20_000)
  })
})

test('JSON constrained by a grammar after the reasoning is read outside all parts', () => {
  const template = {
    start_anchor: '@',
    fields: { thinking: { open: '<t>', close: '</t>' }, content: { open: '<r>', close: '</r>' } },
  }
  for (const separatesReasoning of [true, false]) {
    const parser = parsers.parserFor({
      model: 'm',
      tools,
      responseTemplate: template,
      separatesReasoning,
      toolChoice: { mode: 'function', name: 'f' } as ToolChoice,
    })
    const sink = new Reading()
    const stream = parser.open(sink, { constraintWaits: true })
    for (const piece of ['<t>why</t>', '{"a":1}']) stream.push(piece)
    stream.end()
    expect([sink.calls, sink.thought, sink.content]).toEqual([
      [['f', '{"a":1}']],
      ...(separatesReasoning ? ['why', ''] : ['', 'why']),
    ])
  }
})

test('a part opened in the prompt is returned, without its text in the prompt', () => {
  const template = {
    start_anchor: '@',
    fields: { thinking: { open: '<t>', close: '</t>', transform: '{content}' }, content: {} },
  }
  expect(read(template, ['why</t>yes'], { prompt: '@<t>\n' })).toMatchObject({
    reasoning: 'why',
    content: 'yes',
  })
  expect(read(template, ['why</t>yes'], { prompt: '@<t>so ' }).content).toBe('why</t>yes')
  const json = { start_anchor: '@', fields: { content: { content: 'json', transform: null } } }
  expect(read(json, ['{"a":1}'], { prompt: '@\n' }).content).toBe('{"a":1}')
})

test('numbers in arguments keep their digits', () => {
  const written = '{"v":[18446744073709551616,1e400,-0,1.0,1.50]}'
  const text = `<call>{"name":"g","arguments":${written}}</call>`
  expect(read(templates.tags, [text]).calls).toEqual([['g', written]])
})

test('names from the model select only own properties', () => {
  const text = '<call>{"name":"constructor","arguments":{"__proto__":{"x":1},"toString":"1"}}</call>'
  expect(read(templates.tags, [text]).calls).toEqual([
    ['constructor', '{"__proto__":{"x":1},"toString":"1"}'],
  ])
})

test('output that matches no part of its template is the answer', () => {
  expect(read(templates.frames, ['Hello ', 'world.\n'])).toMatchObject({ content: 'Hello world.\n' })
})

test('a long text before any part is the answer, too', () => {
  const long = 'word '.repeat(20_000)
  const text = `${long}<|SAY|>Yes.<|/SAY|>`
  const pieces = Array.from({ length: Math.ceil(text.length / 7) }, (_, at) => text.slice(at * 7, at * 7 + 7))
  expect(read(templates.frames, [text]).content).toBe(`${long}Yes.`)
  expect(read(templates.frames, pieces).content).toBe(`${long}Yes.`)
})

test('the prompt determines the start of the answer, and none of it is returned', () => {
  const prompt = 'x [[assistant]]\nold [[assistant]]\n<call>{"name":"f"}</call><think>It is'
  const { reasoning, calls } = read(templates.tags, [' so.</think>'], { prompt })
  expect([reasoning, calls]).toEqual([' so.', []])
})

test('reasoning that is not separated is text with its marks', () => {
  const text = '<think>why</think>Because.'
  expect(read(templates.tags, [text], { separatesReasoning: false })).toMatchObject({
    reasoning: '',
    content: text,
  })
})

test('forced calls are JSON after the reasoning', () => {
  const parser = parsers.parserFor({
    model: 'm',
    tools,
    responseTemplate: templates.tags,
    toolChoice: { mode: 'required' } as ToolChoice,
  })
  expect(parser.toolConstraint).toMatchObject({ kind: 'json_schema' })
  for (const [pieces, reasoning] of [
    [['<think>hm</think>', '[{"name":"f","parameters":{"a":1}}]'], 'hm'],
    [['[{"name":"f",', '"parameters":{"a":1}}]'], ''],
  ] as const) {
    const sink = new Reading()
    const stream = parser.open(sink, { constraintWaits: true })
    for (const piece of pieces) stream.push(piece)
    stream.end()
    expect([sink.thought, sink.calls, sink.content]).toEqual([reasoning, [['f', '{"a":1}']], ''])
  }
})

test('special tokens are kept if one of them may be a mark', () => {
  const { tool_calls, content } = (templates.tags as { fields: Record<string, object> }).fields
  const template = { start_anchor: '@', fields: { tool_calls, content } }
  const needs = (asked: object) =>
    parsers.parserFor({ model: 'm', tools, responseTemplate: template, ...asked }).needsSpecialTokens
  expect([needs({}), needs({ tools: [] }), needs({ toolChoice: { mode: 'none' } })]).toEqual([
    true,
    false,
    false,
  ])
  expect(needs({ responseTemplate: templates.tags, tools: [] })).toBe(true)
})

test('reports whether the next token belongs to the reasoning', () => {
  const parser = parsers.parserFor({
    model: 'm',
    responseTemplate: templates.tags,
    prompt: '[[assistant]]\n<think>\n',
  })
  const stream = parser.open(new Reading())
  expect([stream.isReasoning, stream.separatesReasoning]).toEqual([true, true])
  stream.push('so</think>')
  expect(stream.isReasoning).toBe(false)
})

describe('an unusable template is rejected with the reason', () => {
  const good = { start_anchor: '@', fields: { content: {} } }
  test.each([
    [{ ...good, fields: {} }, /fields .*/],
    [{ fields: { content: {} } }, 'it has neither start_anchor nor start_anchor_pattern'],
    [{ ...good, version: 2 }, /version/],
    [{ ...good, extra: 1 }, /extra/],
    [{ ...good, fields: { content: { opens: 'x' } } }, /opens/],
    [{ ...good, fields: { a: {}, b: {} } }, 'of the fields a, b only one may have no open'],
    [
      { ...good, fields: { a: { open: 'x', open_pattern: 'y' } } },
      "field 'a' has both open and open_pattern",
    ],
    [{ ...good, fields: { a: { open_pattern: '(' } } }, "field 'a' has no usable open"],
    [{ ...good, fields: { a: { content: 'yaml' } } }, `field 'a' has an unknown content "yaml"`],
    [
      { ...good, fields: { a: { content: 'constructor' } } },
      `field 'a' has an unknown content "constructor"`,
    ],
    [
      { ...good, fields: { a: { content: 'xml-inline', content_args: { tag_pattern: '(a' } } } },
      "field 'a' has no usable content_args: at character 3 there is a ( that nothing closes",
    ],
    [
      { ...good, fields: { a: { content: 'xml-inline', content_args: { tag_pattern: 'a' } } } },
      "field 'a' has no usable content_args: its tag_pattern has no group named 'key'",
    ],
    [
      { ...good, fields: { a: { content: 'kv-lines', content_args: { value_parser: { name: 'x' } } } } },
      "field 'a' has no usable content_args: value_parser.name is not a known content parser",
    ],
    [{ ...good, fields: { a: { join: ' ' } } }, "field 'a' has a join but does not repeat"],
    [
      { ...good, fields: { a: { transform_each: true } } },
      "field 'a' has transform_each without a transform",
    ],
    [{ ...good, fields: { a: { transform: 'x {content}' } } }, "field 'a' has a transform that mixes"],
  ])('%j', (source, reason) => {
    const loaded = loadResponseTemplate(source)
    expect(loaded).toBeInstanceOf(Error)
    expect((loaded as Error).message).toMatch(reason)
  })

  test('a template is parsed once', () => {
    expect(loadResponseTemplate(good)).toBe(loadResponseTemplate(good))
  })
})
