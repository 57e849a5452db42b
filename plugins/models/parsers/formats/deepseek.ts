/** A type word, a name and JSON in a fence. */
import { headedFormat } from './tool-format.ts'

export const DEEPSEEK_SECTION = [['<｜tool▁calls▁begin｜>'], ['<｜tool▁calls▁end｜>']] as const
export const DEEPSEEK_CALL = '<｜tool▁call▁begin｜>'
export const DEEPSEEK_SEPARATOR = '<｜tool▁sep｜>'
export const DEEPSEEK_CALL_END = '<｜tool▁call▁end｜>'

export const deepseek = headedFormat({
  section: DEEPSEEK_SECTION,
  open: [DEEPSEEK_CALL, 'function', DEEPSEEK_SEPARATOR],
  nameEnd: '```json',
  body: 'json',
  json: { style: 'compact', other: 'wrap' },
  close: ['```', DEEPSEEK_CALL_END],
})
