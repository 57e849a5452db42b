/** Structural tags: the marks of a format around JSON schemas, in the form engines take. */
import { KIMI_ARGUMENTS, KIMI_CALL, KIMI_CALL_END, KIMI_SECTION } from './formats/format-table.ts'
import type { DeclaredTool } from './scan/tool-types.ts'

interface Tag {
  readonly begin: string
  readonly content: unknown
  readonly end: string
}

export interface StructuralTag {
  readonly format: {
    readonly type: 'triggered_tags'
    readonly triggers: readonly string[]
    readonly tags: readonly Tag[]
    readonly at_least_one?: boolean
    readonly stop_after_first?: boolean
  }
}

type TagsOf = (tools: readonly DeclaredTool[]) => {
  readonly triggers: readonly string[]
  readonly tags: readonly Tag[]
}

const builders: ReadonlyMap<string, TagsOf> = new Map<string, TagsOf>([
  ['mistral', mistralTags],
  ['kimik2', kimiTags],
  ['kimi_k3', channelTags],
  ['inkling', frameTags],
  ['harmony', harmonyTags],
])

/** Null for formats without a structural tag. */
export function structuralTagOf(
  format: string,
  tools: readonly DeclaredTool[],
  isNamed: boolean,
): StructuralTag | null {
  const build = builders.get(format)
  if (build === undefined) return null
  const { triggers, tags } = build(tools)
  return {
    format: {
      type: 'triggered_tags',
      triggers,
      tags,
      at_least_one: true,
      ...(isNamed ? { stop_after_first: true } : {}),
    },
  }
}

/** An answer in JSON behind free reasoning, as Harmony frames it. */
export function harmonyAnswerTag(schema: unknown): StructuralTag {
  return {
    format: {
      type: 'triggered_tags',
      triggers: ['<|channel|>analysis', '<|channel|>final'],
      tags: [
        { begin: '<|channel|>analysis<|message|>', content: { type: 'any_text' }, end: '<|end|>' },
        { begin: '<|channel|>final <|constrain|>json<|message|>', content: schemaContent(schema), end: '' },
      ],
    },
  }
}

function schemaContent(schema: unknown) {
  return { type: 'json_schema', json_schema: schema }
}

function mistralTags(tools: readonly DeclaredTool[]) {
  const calls = tools.map(({ name, parameters }) => ({
    begin: `{"name": ${JSON.stringify(name)}, "arguments": `,
    content: schemaContent(parameters),
    end: '}',
  }))
  const content = { type: 'tags_with_separator', tags: calls, separator: ', ', at_least_one: true }
  return { triggers: ['[TOOL_CALLS]'], tags: [{ begin: '[TOOL_CALLS] [', content, end: ']' }] }
}

function kimiTags(tools: readonly DeclaredTool[]) {
  const [[section]] = KIMI_SECTION
  const tags = tools.flatMap(({ name, parameters }, index) =>
    [section + KIMI_CALL, KIMI_CALL].map((open) => ({
      begin: `${open}functions.${name}:${index}${KIMI_ARGUMENTS}`,
      content: schemaContent(parameters),
      end: KIMI_CALL_END,
    })),
  )
  return { triggers: [section, KIMI_CALL], tags }
}

function frameTags(tools: readonly DeclaredTool[]) {
  const open = '<|content_invoke_tool_json|>'
  const tags = tools.map(({ name, parameters }) => ({
    begin: `${open}{"name":${JSON.stringify(name)},"args":`,
    content: schemaContent(parameters),
    end: '}<|end_message|>',
  }))
  return { triggers: [open], tags }
}

function harmonyTags(tools: readonly DeclaredTool[]) {
  const triggers = ['<|start|>assistant<|channel|>commentary', '<|channel|>commentary']
  const tags = tools.flatMap(({ name, parameters }) =>
    triggers.map((trigger) => ({
      begin: `${trigger} to=functions.${name}<|constrain|>json<|message|>`,
      content: schemaContent(parameters),
      end: '',
    })),
  )
  return { triggers, tags }
}

const CHANNEL_TOKENS = ['<|open|>', '<|close|>', '<|sep|>']

function channelTags(tools: readonly DeclaredTool[]) {
  const open = '<|open|>tools<|sep|>'
  const closers = ['<|close|>think<|sep|>', '<|close|>response<|sep|>']
  const calls = tools.map((tool) => channelCall(tool))
  const content = {
    type: 'plus',
    content: calls.length === 1 ? calls[0] : { type: 'or', elements: calls },
  }
  const tags = ['', ...closers].map((prefix) => ({
    begin: prefix + open,
    content,
    end: '<|close|>tools<|sep|>',
  }))
  return { triggers: [open, ...closers], tags }
}

function channelCall({ name, parameters }: DeclaredTool) {
  const escaped = name.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
  return {
    type: 'sequence',
    elements: [
      { type: 'const_string', value: `<|open|>call tool="${escaped}" index="` },
      { type: 'regex', pattern: '[1-9][0-9]*' },
      { type: 'const_string', value: '"<|sep|>' },
      ...channelArguments(parameters),
      { type: 'const_string', value: '<|close|>call<|sep|>' },
    ],
  }
}

function channelArguments(parameters: Readonly<Record<string, unknown>>): unknown[] {
  const { properties, required } = parameters
  if (typeof properties !== 'object' || properties === null || Object.keys(properties).length === 0)
    return [{ type: 'any_text', excludes: ['<|close|>call'] }]
  const needed = new Set(Array.isArray(required) ? required : [])
  return Object.entries(properties).map(([key, schema]) => {
    const argument = channelArgument(key, schema)
    return needed.has(key) ? argument : { type: 'optional', content: argument }
  })
}

function channelArgument(key: string, schema: unknown) {
  const { type, enum: values } = (typeof schema === 'object' && schema !== null ? schema : {}) as {
    type?: unknown
    enum?: unknown
  }
  const kind = type === 'integer' ? 'number' : typeof type === 'string' ? type : 'string'
  const escaped = key.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
  const strings = Array.isArray(values) ? values.filter((value) => typeof value === 'string') : []
  const text =
    strings.length > 0
      ? { type: 'or', elements: strings.map((value) => ({ type: 'const_string', value })) }
      : { type: 'any_text', excludes: CHANNEL_TOKENS }
  return {
    type: 'sequence',
    elements: [
      { type: 'const_string', value: `<|open|>argument key="${escaped}" type="${kind}"<|sep|>` },
      kind === 'string' ? text : schemaContent(schema),
      { type: 'const_string', value: '<|close|>argument<|sep|>' },
    ],
  }
}
