/** Base class of the readers of arguments that are written member by member. @hot */
import { ChunkReader } from '../scan/chunk-reader.ts'
import { DONE, FAILED, RUNNING } from '../scan/json-scanner.ts'
import type { CallOutput } from './call-output.ts'
import type { BodyReader } from './headed-calls-reader.ts'
import { LiteralValue } from './literal-value.ts'

export abstract class ObjectBody extends ChunkReader implements BodyReader {
  status = RUNNING
  protected readonly out: CallOutput
  protected readonly tool: string
  /** The current member's value, if it is streamed. */
  protected readonly value: LiteralValue
  /** Characters that the arguments may still have. */
  protected left: number
  /** Members written so far. */
  #members = 0

  constructor(out: CallOutput, tool: string) {
    super()
    this.out = out
    this.tool = tool
    this.value = new LiteralValue(out)
    this.left = out.options.limits.maxArgumentChars
  }

  feed(text: string, from: number, isEnd: boolean): number {
    this.input = text
    this.at = from
    this.isEnd = isEnd
    while (this.status === RUNNING && this.step());
    return this.at
  }

  /** JSON in front of the value of the next member. */
  protected head(key: string, comma = ',', colon = ':'): string {
    return (this.#members++ === 0 ? '{' : comma) + JSON.stringify(key) + colon
  }

  /** The text is not a call. */
  protected fail(): false {
    this.status = FAILED
    return false
  }

  /** The arguments are complete. */
  protected complete(): false {
    this.out.arguments(this.#members === 0 ? '{}' : '}')
    this.status = DONE
    return false
  }
}
