/** `call:name{key:value,…}` with strings between special marks. */
import { DictBody } from '../calls/dict-body.ts'
import { MarkerSearch } from '../scan/marker-search.ts'
import { ALL_TEXT, headedFormat } from './tool-format.ts'

function callWithMarks(open: string, close: string, quoteMark: string) {
  const mark = new MarkerSearch([quoteMark])
  return headedFormat(
    {
      open: [open, 'call:'],
      nameEnd: '{',
      body: 'own',
      openBody: (out) => new DictBody(out, mark),
      close: [close],
    },
    ALL_TEXT,
  )
}

export const gemma4 = callWithMarks('<|tool_call>', '<tool_call|>', '<|"|>')
export const functionGemma = callWithMarks('<start_function_call>', '<end_function_call>', '<escape>')
