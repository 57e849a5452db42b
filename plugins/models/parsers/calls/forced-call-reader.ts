/** Reads output that a schema restricts to the arguments of one named call. @hot */
import { DONE, RUNNING } from '../scan/json-scanner.ts'
import type { CallOutput } from './call-output.ts'
import { CallReader } from './call-reader.ts'
import { JsonArguments } from './json-arguments.ts'

export class ForcedCallReader extends CallReader {
  readonly #json: JsonArguments

  constructor(out: CallOutput, name: string) {
    super(out)
    this.#json = new JsonArguments(out, name, { style: 'compact', other: 'keep' })
    out.begin()
  }

  protected override readText(): boolean {
    this.consume(this.#json.feed(this.input, this.at, this.isEnd) - this.at)
    if (this.#json.status === RUNNING) return false
    if (this.#json.status === DONE) {
      this.out.done()
      this.out.close()
    } else this.out.fail()
    return this.enter(this.#readRest)
  }

  #readRest(): boolean {
    this.textUntil(this.input.length)
    return false
  }
}
