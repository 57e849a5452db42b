/** Formats whose calls are a name and pairs of keys and values. */
import type { HeadedFormat, Heads } from '../calls/headed-format.ts'
import { type PairFormat, withPairs } from '../calls/pairs-body.ts'
import { ENTITIES } from '../calls/tag-attributes.ts'
import { ALL_TEXT, headedFormat } from './tool-format.ts'

function pairsFormat(heads: Heads, pair: PairFormat) {
  return headedFormat(withPairs(heads, pair))
}

/** A tag for the call, and one each for key and value. */
function keyTags(call: string, prefix: string, stop: 'line' | 'word', section?: Heads['section']) {
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

/** The name ends with its line. */
export const glm45Moe = keyTags('tool_call', '', 'line')
/** The name ends with its word. */
export const glm = keyTags('tool_call', '', 'word')
export const iquest = keyTags('iquest_tool_call', '', 'word')
export const k2Horizon = keyTags('ifm|tool_call', 'ifm|', 'word', [
  ['<ifm|tool_calls>'],
  ['</ifm|tool_calls>'],
])

/** The marks of Hunyuan with one suffix, which is empty or begins with a colon. */
function hunyuanTags(suffix: string): HeadedFormat {
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

/** Pairs of tags that may all have the suffix of their section. */
export const hyV4 = headedFormat(hunyuanTags(''), ALL_TEXT)

/** A tag with the key in an attribute. */
function namedPair(tag: string, rules: Partial<PairFormat> = {}): PairFormat {
  return {
    open: `<${tag} name="`,
    keyEnd: '">',
    toKey: (header) => (header === '' ? null : { name: header }),
    close: `</${tag}>`,
    ...rules,
  }
}

/** Values may be in CDATA. */
export const minicpm5 = pairsFormat(
  { open: ['<function name="'], nameEnd: '">', close: ['</function>'] },
  namedPair('param', { verbatim: ['<![CDATA[', ']]>'] }),
)

/** Invoke tags in a wrapper. */
function invokeTags(wrapper: string, rules?: Partial<PairFormat>) {
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

export const minimaxM2 = invokeTags('minimax:tool_call', { replaced: ENTITIES })
export const dots3 = invokeTags('dots_function_call')

/** An invoke tag behind a type word. */
export const step3 = pairsFormat(
  {
    section: [['<｜tool_calls_begin｜>'], ['<｜tool_calls_end｜>']],
    open: ['<｜tool_call_begin｜>', 'function', '<｜tool_sep｜>', '<steptml:invoke name="'],
    nameEnd: '">',
    close: ['</steptml:invoke>', '<｜tool_call_end｜>'],
  },
  namedPair('steptml:parameter', { isTyped: false }),
)

/** A function tag inside a call tag. */
function functionTags(call: string, isExact = false) {
  return pairsFormat(
    { open: [`<${call}>`, '<function='], nameEnd: '>', close: ['</function>', `</${call}>`] },
    { open: '<parameter=', keyEnd: '>', close: '</parameter>', isExact },
  )
}

export const qwenXml = functionTags('tool_call')
/** Values stand directly between their tags. */
export const qwen3TaggedDirect = functionTags('tool_call', true)
export const seedOss = functionTags('seed:tool_call')
