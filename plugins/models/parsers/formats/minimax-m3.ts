/** Elements named by their keys, every tag behind a prefix. */
import { elementsToJson, M3_PREFIX } from '../scan/prefixed-elements.ts'
import { headedFormat } from './tool-format.ts'

export const minimaxM3 = headedFormat({
  section: [[`${M3_PREFIX}<tool_call>`], [`${M3_PREFIX}</tool_call>`]],
  open: [`${M3_PREFIX}<invoke name="`],
  nameEnd: '">',
  body: 'block',
  block: { toArguments: (body, tools, tool) => elementsToJson(body, (key) => tools.parameter(tool, key)) },
  close: [`${M3_PREFIX}</invoke>`],
})
