/** The functions of a request as the namespace that Harmony models read. */

import type { ChatTool } from '#kernel'
import { isObject } from '#kernel'

/** The section of tools; empty without any. Of tools with one name the first counts. */
export function toolNamespace(tools: readonly ChatTool[]): string {
  const byName = new Map<string, ChatTool['function']>()
  for (const { function: tool } of tools) if (!byName.has(tool.name)) byName.set(tool.name, tool)
  if (byName.size === 0) return ''
  const types = [...byName.values()].map(declaration)
  return `# Tools\n\n## functions\n\nnamespace functions {\n\n${types.join('')}} // namespace functions`
}

function declaration({ name, description = '', parameters }: ChatTool['function']): string {
  const comment = description === '' ? [] : description.replace(/\r?\n$/, '').split(/\r?\n/)
  const above = comment.map((line) => `// ${line}\n`).join('')
  const given = parameters === undefined || parameters === null ? '' : `_: ${schemaType(parameters, '')}`
  return `${above}type ${name} = (${given}) => any;\n\n`
}

type Json = Readonly<Record<string, unknown>>

/** Schemas that lie deeper are `any`: they come from clients. */
const MAX_DEPTH = 32
const STEP = '    '
const VARIANT_STEP = '   '

/** @param indent of the line that the type begins on */
export function schemaType(schema: unknown, indent: string, depth = 0): string {
  if (!isObject(schema) || depth > MAX_DEPTH) return 'any'
  const { oneOf, type } = schema
  if (Array.isArray(oneOf)) return oneOf.map((variant) => `\n${variantLine(variant, indent, depth)}`).join('')
  if (Array.isArray(type))
    return (
      type
        .filter((one) => typeof one === 'string')
        .map(named)
        .join(' | ') || 'any'
    )
  if (type === 'object') return objectType(schema, indent, depth)
  if (type === 'array')
    return isObject(schema.items) ? `${schemaType(schema.items, indent, depth + 1)}[]` : 'Array<any>'
  if (type === 'string') return enumOf(schema).filter(isText).map(quoted).join(' | ') || 'string'
  if (type === 'boolean') return 'boolean'
  return type === 'integer' || type === 'number' ? 'number' : 'any'
}

function named(type: string): string {
  return type === 'integer' ? 'number' : type
}

function objectType(schema: Json, indent: string, depth: number): string {
  const { description, properties, required } = schema
  const isRequired = new Set(Array.isArray(required) ? required : [])
  const head = isText(description) ? `${indent}// ${description}\n{\n` : '{\n'
  const members = isObject(properties) ? Object.entries(properties) : []
  const body = members.map(([key, value]) => {
    const name = isRequired.has(key) ? key : `${key}?`
    return member(name, isObject(value) ? value : {}, indent, depth)
  })
  return `${head}${body.join('')}${indent}}`
}

/** One property with the comments above and behind it. */
function member(name: string, schema: Json, indent: string, depth: number): string {
  const { title, description, examples, oneOf } = schema
  const titleLines = isText(title) ? [`// ${title}`, '//'] : []
  const samples = Array.isArray(examples) && examples.length > 0 ? examples.filter(isText) : null
  const sampleLines =
    samples === null ? [] : ['// Examples:', ...samples.map((sample) => `// - ${quoted(sample)}`)]
  const textLines = isText(description) ? [`// ${description}`] : []
  const shown = defaultOf(schema)
  if (!Array.isArray(oneOf)) {
    const behind = shown === null ? '' : ` // ${shown}`
    const line = `${name}: ${orNull(schema, schemaType(schema, indent + STEP, depth + 1))},${behind}`
    return lines([...titleLines, ...textLines, ...sampleLines, line], indent)
  }
  const [first] = oneOf
  const isRepeated = isObject(first) && first.description === description
  const above = [
    ...titleLines,
    ...sampleLines,
    ...(isRepeated ? [] : textLines),
    ...(shown === null ? [] : [`// ${shown}`]),
  ]
  const variants = oneOf.map((variant, place) => {
    const said = isObject(variant) ? variant.description : undefined
    const isSaidAbove = isText(description) && (place === 0 || said === description)
    return `${variantLine(variant, indent, depth, isSaidAbove)}\n`
  })
  return `${lines([...above, `${name}:`], indent)}${variants.join('')}${indent},\n`
}

function variantLine(variant: unknown, indent: string, depth: number, isSaidAbove = false): string {
  const type = schemaType(variant, indent + VARIANT_STEP, depth + 1)
  if (!isObject(variant)) return `${indent} | ${type}`
  const { description } = variant
  const said = isText(description) && !isSaidAbove ? description : null
  const comments = [said, defaultOf(variant)].filter((comment) => comment !== null)
  const behind = comments.length === 0 ? '' : ` // ${comments.join(' ')}`
  return `${indent} | ${orNull(variant, type)}${behind}`
}

function lines(list: readonly string[], indent: string): string {
  return list.map((line) => `${indent}${line}\n`).join('')
}

/** Types that speak of null already are left as they are. */
function orNull({ nullable }: Json, type: string): string {
  return nullable === true && !type.includes('null') ? `${type} | null` : type
}

function defaultOf(schema: Json): string | null {
  if (!Object.hasOwn(schema, 'default')) return null
  const { default: value } = schema
  if (isText(value)) return `default: ${enumOf(schema).length > 0 ? value : quoted(value)}`
  return `default: ${JSON.stringify(value)}`
}

function enumOf({ enum: values }: Json): readonly unknown[] {
  return Array.isArray(values) ? values : []
}

/** Nothing is escaped: so the models saw it. */
function quoted(text: string): string {
  return `"${text}"`
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}
