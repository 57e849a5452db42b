/** A name and pairs of key and value tags. */
import type { HeadedFormat } from '../calls/headed-format.ts'
import { headedFormat } from './tool-format.ts'

interface Tags {
  readonly call: string
  readonly key: string
  readonly value: string
  readonly section?: string
}

function pairTags(tags: Tags, stop: 'line' | 'word'): HeadedFormat {
  const open = (tag: string) => `<${tag}>`
  const close = (tag: string) => `</${tag}>`
  const { call, key, value, section } = tags
  return {
    ...(section === undefined ? {} : { section: [[open(section)], [close(section)]] as const }),
    open: [open(call)],
    nameEnd: { stop },
    body: 'pairs',
    pair: {
      open: open(key),
      keyEnd: close(key),
      toKey: (header) => ({ name: header.trim() }),
      valueOpen: open(value),
      close: close(value),
    },
    close: [close(call)],
  }
}

const arguments_ = { key: 'arg_key', value: 'arg_value' }

/** The name ends with its line. */
export const glm45Moe = headedFormat(pairTags({ call: 'tool_call', ...arguments_ }, 'line'))
/** The name ends with its word. */
export const glm = headedFormat(pairTags({ call: 'tool_call', ...arguments_ }, 'word'))
export const iquest = headedFormat(pairTags({ call: 'iquest_tool_call', ...arguments_ }, 'word'))
export const k2Horizon = headedFormat(
  pairTags(
    { call: 'ifm|tool_call', key: 'ifm|arg_key', value: 'ifm|arg_value', section: 'ifm|tool_calls' },
    'word',
  ),
)
