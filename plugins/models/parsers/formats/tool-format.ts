/** A tool-call format: its rules for text, and the factory of its reader. */
import type { CallOutput, TextRules } from '../calls/call-output.ts'
import type { CallReader } from '../calls/call-reader.ts'
import { HeadedCallsReader } from '../calls/headed-calls-reader.ts'
import { compileHeads, type HeadedFormat } from '../calls/headed-format.ts'
import { compileJsonCalls, type JsonCallsFormat, JsonCallsReader } from '../calls/json-calls-reader.ts'
import { compilePython, PythonCallsReader, type PythonFormat } from '../calls/python-calls-reader.ts'

export interface ToolFormat {
  readonly text: TextRules
  /** Every call begins with a mark, and all other text is passed on. */
  readonly isMarked: boolean
  /** A call of an undeclared tool is dropped; other formats pass it on. */
  readonly dropsUndeclared?: boolean
  open(out: CallOutput): CallReader
}

/** Text before the first call is the answer; text after it is ignored in strict mode. */
export const PREFIX_TEXT: TextRules = { trailing: 'prefix', space: 'keep' }
/** Text around the calls is the answer, unchanged. */
export const ALL_TEXT: TextRules = { trailing: 'verbatim', space: 'keep' }

/** Marks are compiled when the first stream of the format is opened. */
export function headedFormat(format: HeadedFormat, text: TextRules = PREFIX_TEXT): ToolFormat {
  let compiled: ReturnType<typeof compileHeads> | null = null
  return {
    text,
    isMarked: true,
    open: (out) => {
      compiled ??= compileHeads(format)
      return new HeadedCallsReader(out, compiled)
    },
  }
}

export function jsonFormat(format: JsonCallsFormat, text: TextRules = PREFIX_TEXT): ToolFormat {
  let compiled: ReturnType<typeof compileJsonCalls> | null = null
  return {
    text,
    isMarked: format.open !== null && format.bare === 'no' && format.wrappers === undefined,
    open: (out) => {
      compiled ??= compileJsonCalls(format)
      return new JsonCallsReader(out, compiled)
    },
  }
}

export function pythonFormat(format: PythonFormat, text: TextRules = PREFIX_TEXT): ToolFormat {
  let compiled: ReturnType<typeof compilePython> | null = null
  return {
    text,
    isMarked: !format.isBare,
    open: (out) => {
      compiled ??= compilePython(format)
      return new PythonCallsReader(out, compiled)
    },
  }
}
