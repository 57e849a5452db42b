/** Families of formats whose calls are a name and pairs of keys and values. */
import type { TextRules } from '../calls/call-output.ts'
import type { HeadedFormat, Heads, OpenBody } from '../calls/headed-calls-reader.ts'
import { JsonArguments } from '../calls/json-arguments.ts'
import { type PairFormat, type PairKey, withPairs } from '../calls/pairs-body.ts'
import { attribute } from '../calls/tag-attributes.ts'
import type { JsonStyle } from '../scan/json-scanner.ts'
import { ANY_JSON } from '../scan/typed-value.ts'
import { headedFormat } from './tool-format.ts'

export function pairsFormat(heads: Heads, pair: PairFormat) {
  return headedFormat(withPairs(heads, pair))
}

/** A tag for the call, and one each for key and value. */
export function keyTags(call: string, prefix: string, stop: 'line' | 'word', section?: Heads['section']) {
  return pairsFormat(
    { section, open: [`<${call}>`], nameEnd: { stop }, close: [`</${call}>`] },
    {
      open: `<${prefix}arg_key>`,
      keyEnd: `</${prefix}arg_key>`,
      valueOpen: `<${prefix}arg_value>`,
      close: `</${prefix}arg_value>`,
    },
  )
}

/** The marks of Hunyuan with one suffix, which is empty or begins with a colon. */
export function hunyuanTags(suffix: string): HeadedFormat {
  const close = (tag: string) => `</${tag}${suffix}>`
  return withPairs(
    {
      section: [['<tool_calls'], [close('tool_calls')]],
      open: [`<tool_call${suffix}>`],
      nameEnd: { stop: 'tag' },
      close: [close('tool_call')],
      suffixed: (given) => (/^(:[\w.-]+)?$/.test(given) ? hunyuanTags(given) : null),
    },
    {
      open: `<arg_key${suffix}>`,
      keyEnd: close('arg_key'),
      valueOpen: `<arg_value${suffix}>`,
      close: close('arg_value'),
      untyped: 'string',
    },
  )
}

/** A tag with the key in an attribute. */
export function namedPair(tag: string, rules: Partial<PairFormat> = {}): PairFormat {
  return {
    open: `<${tag} name="`,
    keyEnd: '">',
    toKey: (header) => (header === '' ? null : { name: header }),
    close: `</${tag}>`,
    ...rules,
  }
}

/** Invoke tags in a wrapper. */
export function invokeTags(wrapper: string, rules?: Partial<PairFormat>) {
  return pairsFormat(
    {
      section: [[`<${wrapper}>`], [`</${wrapper}>`]],
      open: ['<invoke name="'],
      nameEnd: '">',
      close: ['</invoke>'],
    },
    namedPair('parameter', rules),
  )
}

/** A function tag inside a call tag. */
export function functionTags(call: string, isExact = false) {
  return pairsFormat(
    { open: [`<${call}>`, '<function='], nameEnd: '>', close: ['</function>', `</${call}>`] },
    { open: '<parameter=', keyEnd: '>', close: '</parameter>', isExact },
  )
}

const OPEN_BRACE = 0x7b
const END_OF_SENTENCE = '<｜end▁of▁sentence｜>'

interface DsmlVariant {
  readonly block: string
  /** Text after the mark in every tag. */
  readonly gap?: string
  readonly isBlockOptional?: boolean
  readonly text: TextRules
  readonly style?: JsonStyle
}

/** Tags that begin with `<｜DSML｜`; the arguments are pairs or one JSON object. */
export function dsml({ block, gap = '', isBlockOptional, text, style }: DsmlVariant) {
  const tag = (name: string) => `<｜DSML｜${gap}${name}`
  const end = (name: string) => `</｜DSML｜${gap}${name}>`
  const pairs = withPairs(
    {
      section: [[`${tag(block)}>`], [end(block)]],
      isSectionOptional: isBlockOptional,
      open: [tag('invoke name="')],
      nameEnd: '">',
      close: [end('invoke')],
    },
    {
      open: tag('parameter '),
      keyEnd: '>',
      toKey,
      close: end('parameter'),
      replaced: new Map([[END_OF_SENTENCE, '']]),
      isExact: true,
      isTyped: false,
      untyped: 'string',
      style,
    },
  )
  const body: OpenBody = (out, tool, firstCode) =>
    firstCode === OPEN_BRACE
      ? new JsonArguments(out, tool, { style: 'raw', other: 'refuse' })
      : pairs.body(out, tool, firstCode)
  return headedFormat({ ...pairs, body }, text)
}

/** `string="false"` says that the value is JSON; if it is not, it is a string. */
function toKey(header: string): PairKey | null {
  const name = attribute(header, 'name')
  if (name === null) return null
  return attribute(header, 'string') === 'false' ? { name, types: ANY_JSON } : { name }
}
