/** A Python list of dicts. */
import { PythonDictsReader } from '../calls/python-dicts-reader.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import type { ToolFormat } from './tool-format.ts'

const MARK = new MarkerSearch(['<|tool_calls|>'])

export const sarashina: ToolFormat = {
  text: { trailing: 'verbatim', space: 'trim' },
  isMarked: false,
  open: (out) => new PythonDictsReader(out, MARK),
}
