/** Elements named by their keys, every tag behind a prefix. */
import { ElementsBody } from '../calls/elements-body.ts'
import { M3_PREFIX } from '../scan/prefixed-elements.ts'
import { headedFormat } from './tool-format.ts'

export const minimaxM3 = headedFormat({
  section: [[`${M3_PREFIX}<tool_call>`], [`${M3_PREFIX}</tool_call>`]],
  open: [`${M3_PREFIX}<invoke name="`],
  nameEnd: '">',
  body: 'own',
  openBody: (out) => new ElementsBody(out, 'invoke'),
  close: [`${M3_PREFIX}</invoke>`],
})
