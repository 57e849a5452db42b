/** Hands text on unchanged: for models whose calls nobody can read, and where none are wanted. @hot */
import { CallReader } from './call-reader.ts'

export class PassthroughReader extends CallReader {
  protected override get isClosing(): boolean {
    return false
  }

  protected override step(): boolean {
    this.textUntil(this.input.length)
    return false
  }
}
