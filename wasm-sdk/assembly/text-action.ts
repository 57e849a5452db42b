/** Result of a handler of text: the text to pass on now, and the text to hold back. */
import { ByteBuffer } from './byte-buffer'
import { output, outputHead } from './output'

export class TextAction {
  private constructor(
    private passed: string | null,
    private held: string,
  ) {}

  /** Passes the whole text on unchanged. */
  static unchanged(): TextAction {
    return new TextAction(null, '')
  }

  /**
   * @param text sent to the client now, instead of the piece's text
   * @param held at most 64 KiB: the next piece of this text begins with it
   */
  static pass(text: string, held: string = ''): TextAction {
    return new TextAction(text, held)
  }

  /** Writes the output of the call. */
  send(): void {
    const passed = this.passed
    if (passed === null) return
    const body = new ByteBuffer(passed.length + this.held.length + 16)
    body.text(passed)
    const length = body.length
    body.text(this.held)
    const head = outputHead()
    if (body.length > length) head.key('held_bytes').integer(body.length - length)
    output(head.endObject(), body.start, body.length)
  }
}
