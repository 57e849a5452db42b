/** No calls: all output is text. @hot */
import { CallReader } from '../calls/call-reader.ts'
import { ALL_TEXT, type ToolFormat } from './tool-format.ts'

export class PassthroughReader extends CallReader {
  protected override readText(): boolean {
    this.textUntil(this.input.length)
    return false
  }
}

export const passthrough: ToolFormat = {
  text: ALL_TEXT,
  isMarked: false,
  open: (out) => new PassthroughReader(out),
}
