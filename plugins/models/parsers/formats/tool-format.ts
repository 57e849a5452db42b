/** A tool-call format: its rules for text, and the factory of its reader. @hot */
import type { CallOutput, TextRules } from '../calls/call-output.ts'
import { CallReader } from '../calls/call-reader.ts'
import { compileHeads, HeadedCallsReader, type HeadedFormat } from '../calls/headed-calls-reader.ts'
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

/** Marks around the answer of Cohere's models. */
export const RESPONSE_WRAPPERS = [
  '<|START_RESPONSE|>',
  '<|END_RESPONSE|>',
  '<|START_TEXT|>',
  '<|END_TEXT|>',
] as const

export function headedFormat(format: HeadedFormat, text: TextRules = PREFIX_TEXT): ToolFormat {
  const heads = compileHeads(format)
  return { text, isMarked: true, open: (out) => new HeadedCallsReader(out, heads) }
}

export function jsonFormat(format: JsonCallsFormat, text: TextRules = PREFIX_TEXT): ToolFormat {
  const compiled = compileJsonCalls(format)
  return {
    text,
    isMarked: format.bare === undefined && format.wrappers === undefined,
    open: (out) => new JsonCallsReader(out, compiled),
  }
}

export function pythonFormat(format: PythonFormat, text: TextRules = PREFIX_TEXT): ToolFormat {
  const compiled = compilePython(format)
  return { text, isMarked: format.isBare !== true, open: (out) => new PythonCallsReader(out, compiled) }
}

class PassthroughReader extends CallReader {
  protected override readText(): boolean {
    this.textUntil(this.input.length)
    return false
  }
}

/** No calls: all output is text. */
export const passthrough: ToolFormat = {
  text: ALL_TEXT,
  isMarked: false,
  open: (out) => new PassthroughReader(out),
}
