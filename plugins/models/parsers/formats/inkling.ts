/** Typed frames; a call of an undeclared tool is dropped with its frame. */
import { TypedFramesReader } from '../calls/typed-frames-reader.ts'
import { ALL_TEXT, type ToolFormat } from './tool-format.ts'

export const inkling: ToolFormat = {
  text: ALL_TEXT,
  isMarked: false,
  dropsUndeclared: true,
  open: (out) => new TypedFramesReader(out),
}
