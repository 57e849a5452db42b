/** A name and JSON, without type word and fence. */
import { DEEPSEEK_CALL, DEEPSEEK_CALL_END, DEEPSEEK_SECTION, DEEPSEEK_SEPARATOR } from './deepseek.ts'
import { headedFormat } from './tool-format.ts'

export const deepseek31 = headedFormat({
  section: DEEPSEEK_SECTION,
  open: [DEEPSEEK_CALL],
  nameEnd: DEEPSEEK_SEPARATOR,
  body: 'json',
  json: { style: 'compact', other: 'wrap' },
  close: [DEEPSEEK_CALL_END],
})
