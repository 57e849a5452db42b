/** The first JSON object or array in the text that is a call. @source parsers facts 1.2 */
import { ALL_TEXT, jsonFormat } from './tool-format.ts'

const call = {
  nameKeys: ['name', 'function', 'tool_name'],
  argumentKeys: ['arguments', 'parameters'],
  firstKeys: ['id', 'type'],
}

export const json = jsonFormat(
  { call, open: null, close: null, shape: 'either', bare: 'anywhere', isOnce: true },
  ALL_TEXT,
)

/** Arrays only. @source parsers facts of November 2026, 2 */
export const xlam = jsonFormat(
  { call, open: null, close: null, shape: 'array', bare: 'anywhere', isOnce: true },
  ALL_TEXT,
)
