/** Formats whose calls are Python. */
import { PythonDictsReader } from '../calls/python-dicts-reader.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { ALL_TEXT, pythonFormat, type ToolFormat } from './tool-format.ts'

export const pythonic = pythonFormat(
  { open: '<|python_start|>', close: '<|python_end|>', isBare: true },
  ALL_TEXT,
)

export const lfm25 = pythonFormat({ open: '<|tool_call_start|>', close: '<|tool_call_end|>' })

export const olmo3 = pythonFormat({ open: '<function_calls>', close: '</function_calls>' })

const SARASHINA_MARK = new MarkerSearch(['<|tool_calls|>'])

/** A list of dicts. */
export const sarashina: ToolFormat = {
  text: { trailing: 'verbatim', space: 'trim' },
  isMarked: false,
  open: (out) => new PythonDictsReader(out, SARASHINA_MARK),
}
