/** `call:name{key:value,…}` with strings between marks of their own. */
import { quotedDictToJson } from '../scan/quoted-dict.ts'
import { ALL_TEXT, headedFormat } from './tool-format.ts'

function callWithMarks(open: string, close: string, quoteMark: string) {
  return headedFormat(
    {
      open: [open, 'call:'],
      nameEnd: '{',
      body: 'block',
      block: {
        quote: quoteMark,
        toArguments: (body, tools, tool) => {
          const trimmed = body.trimEnd()
          if (!trimmed.endsWith('}')) return null
          return quotedDictToJson(`{${trimmed}`, quoteMark, (key) => tools.parameter(tool, key))
        },
      },
      close: [close],
    },
    ALL_TEXT,
  )
}

export const gemma4 = callWithMarks('<|tool_call>', '<tool_call|>', '<|"|>')
export const functionGemma = callWithMarks('<start_function_call>', '<end_function_call>', '<escape>')
