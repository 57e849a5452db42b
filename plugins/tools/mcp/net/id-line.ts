/** Finds out whether any event of a stream has an id, wherever the network cuts the stream. */

const WANTED = Buffer.from('id')
const LINE_FEED = 10
const CARRIAGE_RETURN = 13
const COLON = 58

export class IdLine {
  /** Some line of the stream is an `id` field. */
  isFound = false
  /** Bytes of the line that match so far; -1: this line is another. */
  #matched = 0

  read(chunk: Uint8Array): void {
    if (this.isFound) return
    for (const byte of chunk) {
      if (byte === LINE_FEED || byte === CARRIAGE_RETURN) this.#matched = 0
      else if (this.#matched === WANTED.length && byte === COLON) {
        this.isFound = true
        return
      } else this.#matched = this.#matched >= 0 && byte === WANTED[this.#matched] ? this.#matched + 1 : -1
    }
  }
}
