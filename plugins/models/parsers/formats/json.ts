/** The first JSON object or array in the text that is a call. */
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

/** Arrays only. */
export const xlam = jsonFormat(
  { call, open: null, close: null, shape: 'array', bare: 'anywhere', isOnce: true },
  ALL_TEXT,
)
