/** Pairs of tags that may all have the suffix of their section. */
import type { HeadedFormat } from '../calls/headed-format.ts'
import { ALL_TEXT, headedFormat } from './tool-format.ts'

/** The marks of one suffix, which is empty or begins with a colon; null if it is not a suffix. */
function withSuffix(suffix: string): HeadedFormat | null {
  if (!/^(:[\w.-]+)?$/.test(suffix)) return null
  const close = (tag: string) => `</${tag}${suffix}>`
  return {
    section: [['<tool_calls'], [close('tool_calls')]],
    open: [`<tool_call${suffix}>`],
    nameEnd: { stop: 'tag' },
    body: 'pairs',
    pair: {
      open: `<arg_key${suffix}>`,
      keyEnd: close('arg_key'),
      toKey: (header) => ({ name: header.trim() }),
      valueOpen: `<arg_value${suffix}>`,
      close: close('arg_value'),
      untyped: 'string',
    },
    close: [close('tool_call')],
    suffixed: withSuffix,
  }
}

const plain = withSuffix('')
if (plain === null) throw new TypeError('the empty suffix is one')

export const hyV4 = headedFormat(plain, ALL_TEXT)
