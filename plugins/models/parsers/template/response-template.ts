/**
 * Response templates: the parts of an answer and their marks, from `tokenizer_config.json`. They are interpreted as by the
 * transformers library.
 */
import { defineValidator, type Static, Type } from '#kernel'
import { compileLiterals, compilePattern, type PatternProgram } from './pattern-program.ts'
import { allMatches } from './pattern-run.ts'
import { type ContentRules, checkContentArgs, checkTransform, isContentParser } from './region-content.ts'

const literals = Type.Union([
  Type.String({ minLength: 1 }),
  Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 64 }),
])
const pattern = Type.String()

const fieldSchema = Type.Object(
  {
    open: Type.Optional(literals),
    open_pattern: Type.Optional(pattern),
    close: Type.Optional(literals),
    close_pattern: Type.Optional(pattern),
    content: Type.Optional(Type.String()),
    content_args: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    repeats: Type.Optional(Type.Boolean()),
    join: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    optional: Type.Optional(Type.Boolean()),
    transform: Type.Optional(Type.Unknown()),
    transform_each: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)

const templateSchema = Type.Object(
  {
    version: Type.Optional(Type.Literal(1)),
    defaults: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    fields: Type.Record(Type.String(), fieldSchema, { minProperties: 1, maxProperties: 32 }),
    start_anchor: Type.Optional(literals),
    start_anchor_pattern: Type.Optional(pattern),
  },
  { additionalProperties: false },
)

const validator = defineValidator(templateSchema)

type FieldSource = Static<typeof fieldSchema>

/** Kind of a part: answer, reasoning or calls. */
export type FieldRole = 'text' | 'reasoning' | 'calls'

export interface TemplateField extends ContentRules {
  readonly name: string
  readonly role: FieldRole
  /** Null for the implicit part, which holds all text outside the others. */
  readonly open: PatternProgram | null
  /** Null: the part extends to the end. */
  readonly close: PatternProgram | null
  /** Text between several parts of the field. */
  readonly join: string
  /** The text is the value, and is passed on as it arrives. */
  readonly isStreamed: boolean
  readonly strips: boolean
}

export interface ResponseTemplate {
  readonly fields: readonly TemplateField[]
  readonly implicit: TemplateField | null
  readonly hasReasoning: boolean
  readonly hasCalls: boolean
  /** Beginning of the answer at the end of a prompt. */
  prefixOf(prompt: string): string
}

/** Names of fields with reasoning. */
const REASONING_NAMES: ReadonlySet<string> = new Set([
  'reasoning_content',
  'reasoning',
  'thinking',
  'thoughts',
])
const CALLS_NAMES: ReadonlySet<string> = new Set(['tool_calls', 'tool_call'])
/** Maximum length of a prompt's end in which a pattern searches the anchor. */
const MAX_TAIL = 65_536
/** Maximum instructions of all programs of one template. */
const MAX_STEPS = 4_096

const loaded = new WeakMap<object, ResponseTemplate | Error>()

/** Caches the result by object. @returns an Error with the reason if it cannot be used */
export function loadResponseTemplate(source: object): ResponseTemplate | Error {
  const known = loaded.get(source)
  if (known !== undefined) return known
  const template = read(source)
  loaded.set(source, template)
  return template
}

function read(source: object): ResponseTemplate | Error {
  try {
    return compile(source)
  } catch (failure) {
    return failure instanceof Error ? failure : new Error(String(failure))
  }
}

function compile(source: object): ResponseTemplate {
  const problem = validator.problem(source)
  if (problem !== null) throw new Error(`${problem.field === '' ? 'it' : problem.field} ${problem.text}`)
  const { fields: rows, start_anchor, start_anchor_pattern } = validator.parse(source)
  const fields = Object.entries(rows).map(([name, row]) => toField(name, row))
  const open = fields.filter((field) => field.open === null)
  if (open.length > 1)
    throw new Error(`of the fields ${open.map(({ name }) => name).join(', ')} only one may have no open`)
  let steps = 0
  for (const field of fields) steps += (field.open?.code.length ?? 0) + (field.close?.code.length ?? 0)
  if (steps > MAX_STEPS) throw new Error(`its patterns have more than ${MAX_STEPS} steps`)
  return {
    fields,
    implicit: open[0] ?? (fields.some(({ role }) => role === 'text') ? null : leftover()),
    hasReasoning: fields.some(({ role }) => role === 'reasoning'),
    hasCalls: fields.some(({ role }) => role === 'calls'),
    prefixOf: anchorOf(start_anchor, start_anchor_pattern),
  }
}

function toField(name: string, row: FieldSource): TemplateField {
  const { content = 'text', content_args: contentArgs = {}, join, repeats } = row
  const transform = row.transform ?? undefined
  const fault = (text: string) => new Error(`field '${name.slice(0, 100)}' ${text}`)
  if (!isContentParser(content))
    throw fault(`has an unknown content ${JSON.stringify(content.slice(0, 100))}`)
  try {
    checkContentArgs(content, contentArgs)
  } catch (failure) {
    throw fault(`has no usable content_args: ${(failure as Error).message}`)
  }
  const each = row.transform_each === true
  if (each && transform === undefined) throw fault('has transform_each without a transform')
  if (typeof join === 'string' && repeats !== true) throw fault('has a join but does not repeat')
  if (transform !== undefined) checkTransform(transform, fault)
  const role = REASONING_NAMES.has(name) ? 'reasoning' : CALLS_NAMES.has(name) ? 'calls' : 'text'
  return {
    name,
    role,
    open: delimiter(row.open, row.open_pattern, 'open', fault),
    close: delimiter(row.close, row.close_pattern, 'close', fault),
    content,
    contentArgs,
    join: join ?? '',
    transform,
    transformsEach: each,
    isStreamed: role !== 'calls' && content === 'text' && transform === undefined,
    strips: contentArgs.strip !== false,
  }
}

/** Field of the answer, for templates that describe only the other parts. */
function leftover(): TemplateField {
  return toField('content', {})
}

function delimiter(
  texts: string | readonly string[] | undefined,
  source: string | undefined,
  key: string,
  fault: (text: string) => Error,
): PatternProgram | null {
  if (texts !== undefined && source !== undefined) throw fault(`has both ${key} and ${key}_pattern`)
  try {
    if (texts !== undefined) return compileLiterals(typeof texts === 'string' ? [texts] : texts)
    return source === undefined ? null : compilePattern(source)
  } catch (failure) {
    throw fault(`has no usable ${key}: ${(failure as Error).message}`)
  }
}

/** The answer begins after the last anchor; without an anchor the prompt has no part of it. */
function anchorOf(
  texts: string | readonly string[] | undefined,
  source: string | undefined,
): (prompt: string) => string {
  const program = delimiter(texts, source, 'start_anchor', (text) => new Error(`it ${text}`))
  if (program === null) throw new Error('it has neither start_anchor nor start_anchor_pattern')
  if (texts === undefined) return (prompt) => behindLast(program, prompt.slice(-MAX_TAIL))
  const anchors = typeof texts === 'string' ? [texts] : texts
  return (prompt) => {
    let at = -1
    for (const anchor of anchors) {
      const found = prompt.lastIndexOf(anchor)
      if (found >= 0) at = Math.max(at, found + anchor.length)
    }
    return at < 0 ? '' : prompt.slice(at)
  }
}

function behindLast(program: PatternProgram, text: string): string {
  let at = -1
  try {
    for (const { end } of allMatches(program, text)) at = end
  } catch {
    // Too many steps: treated as no anchor.
    return ''
  }
  return at < 0 ? '' : text.slice(at)
}
