/** Tags that begin with `<｜DSML｜`, in three variants; the arguments are pairs or one JSON object. */
import type { TextRules } from '../calls/call-output.ts'
import type { OpenBody } from '../calls/headed-format.ts'
import { JsonArguments } from '../calls/json-arguments.ts'
import { type PairKey, withPairs } from '../calls/pairs-body.ts'
import { attribute } from '../calls/tag-attributes.ts'
import type { JsonStyle } from '../scan/json-scanner.ts'
import { ANY_JSON } from '../scan/typed-value.ts'
import { headedFormat } from './tool-format.ts'

const OPEN_BRACE = 0x7b
const END_OF_SENTENCE = '<｜end▁of▁sentence｜>'

interface Variant {
  readonly block: string
  /** Text after the mark in every tag. */
  readonly gap: string
  readonly isBlockOptional: boolean
  readonly text: TextRules
  readonly style: JsonStyle
}

function dsml({ block, gap, isBlockOptional, text, style }: Variant) {
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

const trimmed: TextRules = { trailing: 'prefix', space: 'before-calls' }

export const deepseek32 = dsml({
  block: 'function_calls',
  gap: '',
  isBlockOptional: false,
  text: trimmed,
  style: 'compact',
})

export const deepseekV4 = dsml({
  block: 'tool_calls',
  gap: '',
  isBlockOptional: false,
  text: trimmed,
  style: 'compact',
})

export const deepseekV41 = dsml({
  block: 'calls',
  gap: ' ',
  isBlockOptional: true,
  text: { trailing: 'prefix', space: 'blank-line' },
  style: 'spaced',
})
