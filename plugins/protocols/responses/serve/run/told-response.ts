/** What a response says of itself: its members, and the frames of its beginning and its end. */

import type { GatewayError, GenerationUsage, HistoryItem, ResponseStatus } from '#kernel'
import { toClientItems } from '#shared'
import { errorEventMembers, toResponseError } from '../../error-format.ts'
import { responsesErrors } from '../../errors.ts'
import { type FrameSink, Frames } from '../output/frames.ts'
import type { Json } from '../read/fields.ts'
import { replyMembersText, replyText } from './reply-object.ts'

/** How a response ended. */
export interface ToldEnd {
  readonly error?: GatewayError | null
  readonly usage: GenerationUsage | null
  readonly incompleteReason?: string | null
}

export class ToldResponse {
  readonly #id: string
  readonly #createdAtSec: number
  /** JSON of what the request asked for. */
  readonly #echo: string

  /** @param echo what the request asked for */
  constructor({ id, createdAtSec }: { id: string; createdAtSec: number }, echo: Json) {
    this.#id = id
    this.#createdAtSec = createdAtSec
    this.#echo = JSON.stringify(echo)
  }

  /** JSON of all but the output. @param end undefined while it is made */
  members(status: ResponseStatus, end?: ToldEnd): string {
    const error = end?.error ?? (status === 'failed' ? responsesErrors.worker_aborted() : null)
    return replyMembersText(
      {
        id: this.#id,
        createdAtSec: this.#createdAtSec,
        status,
        error: error === null ? null : toResponseError(error),
        incompleteReason: end?.incompleteReason ?? null,
        usage: end?.usage ?? null,
        isOver: end !== undefined,
      },
      this.#echo,
    )
  }

  /** @param wasQueued as background responses were */
  sendBegin(frames: Frames, wasQueued: boolean): void {
    const response = replyText(this.members('in_progress'), '[]')
    const first = wasQueued ? replyText(this.members('queued'), '[]') : response
    frames.send('response.created', `"response":${first}`)
    frames.send('response.in_progress', `"response":${response}`)
  }

  /** @param reply the whole of it, as JSON */
  sendEnd(frames: Frames, status: ResponseStatus, reply: string): void {
    const type = status === 'completed' ? 'completed' : 'incomplete'
    frames.send(`response.${type}`, `"response":${reply}`)
  }

  /** @param members JSON of all but the output */
  sendFailure(
    frames: Frames,
    members: string,
    error: GatewayError | null,
    output: readonly HistoryItem[],
  ): void {
    if (error !== null) frames.send('error', errorEventMembers(error))
    frames.send('response.failed', `"response":${replyText(members, JSON.stringify(toClientItems(output)))}`)
  }

  /** Frames that end the stream where somebody else has failed the request. @param first number of the first one */
  lastFrames(first: number, error: GatewayError, output: readonly HistoryItem[]): string {
    let text = ''
    const take: FrameSink = (frame) => {
      text += frame
    }
    this.sendFailure(new Frames(take, first), this.members('failed', { error, usage: null }), error, output)
    return text
  }
}
