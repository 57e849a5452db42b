/**
 * Extracts the DATA frames of some streams from the bytes of an HTTP/2 connection, drops frames of extensions, and forwards all
 * other bytes unchanged.
 * Avoids the cost of Node's http2 per frame (a call from C++, the tick queue, a stream), since one read of a busy connection
 * holds a frame of nearly every stream. @hot @source RFC 9113 §4.1, §6.1, §6.9
 */

const HEAD_BYTES = 9
const DATA = 0x0
const WINDOW_UPDATE = 0x8
/** The last type of RFC 9113; higher ones are extensions. */
const CONTINUATION = 0x9
const END_STREAM = 0x1
const PADDED = 0x8
const MAX_STREAM_ID = 0x7fffffff

/** Longest frame that we announced; longer ones are forwarded to http2, which rejects them. */
const MAX_FRAME_BYTES = 16_384

/** Receives the data of a stream. */
export interface DataConsumer {
  /**
   * @param bytes a view, possibly empty
   * @param windowBytes their share of the stream's window, including padding
   */
  take(bytes: Buffer, windowBytes: number): void
}

/** Drops frames of extensions, such as ALTSVC: the gateway needs none, and http2 handles each in JavaScript, without a limit. */
const DROPPED: DataConsumer = { take() {} }

export class DataFrames {
  readonly #consumers = new Map<number, DataConsumer>()
  readonly #pass: (bytes: Buffer) => void
  readonly #taken: (bytes: number) => void
  /** An incomplete frame header. */
  readonly #head = Buffer.alloc(HEAD_BYTES)
  #headLength = 0
  /** Remaining bytes of the current frame, which ends with its padding. */
  #left = 0
  #padding = 0
  /** Null: the frame is forwarded. */
  #consumer: DataConsumer | null = null
  #streamId = 0
  #flags = 0
  #awaitsPadLength = false

  /**
   * @param pass receives all other bytes in order
   * @param taken receives the extracted bytes of the connection's window after each read
   */
  constructor(pass: (bytes: Buffer) => void, taken: (bytes: number) => void) {
    this.#pass = pass
    this.#taken = taken
  }

  add(streamId: number, consumer: DataConsumer): void {
    this.#consumers.set(streamId, consumer)
  }

  /** Forwards further data of the stream, except for the rest of the current frame. */
  remove(streamId: number): void {
    this.#consumers.delete(streamId)
  }

  push(chunk: Buffer): void {
    const end = chunk.length
    let at = 0
    let taken = 0
    // Start of the bytes to forward.
    let from = 0
    while (at < end) {
      if (this.#left === 0 && !this.#awaitsPadLength) {
        let head = chunk
        let headAt = at
        if (this.#headLength > 0 || end - at < HEAD_BYTES) {
          at += chunk.copy(this.#head, this.#headLength, at, at + HEAD_BYTES - this.#headLength)
          this.#headLength += at - headAt
          if (from < headAt) this.#pass(chunk.subarray(from, headAt))
          from = at
          if (this.#headLength < HEAD_BYTES) break
          this.#headLength = 0
          head = this.#head
          headAt = 0
        } else at += HEAD_BYTES
        this.#begin(head, headAt)
        if (this.#consumer === null) {
          // The header was split over two reads.
          if (head === this.#head) this.#pass(Buffer.from(head))
          continue
        }
        if (head === chunk && from < headAt) this.#pass(chunk.subarray(from, headAt))
        from = at
        if (this.#left === 0) this.#endFrame()
      } else if (this.#consumer === null) {
        const length = Math.min(this.#left, end - at)
        this.#left -= length
        at += length
      } else if (this.#awaitsPadLength) {
        this.#awaitsPadLength = false
        this.#padding = Math.min(chunk[at], this.#left - 1)
        at++
        taken++
        this.#left--
        this.#consumer.take(chunk.subarray(at, at), 1)
        from = at
        if (this.#left === 0) this.#endFrame()
      } else {
        const length = Math.min(this.#left, end - at)
        const body = Math.min(length, Math.max(0, this.#left - this.#padding))
        this.#left -= length
        if (this.#consumer !== DROPPED) taken += length
        const start = at
        at += length
        from = at
        this.#consumer.take(chunk.subarray(start, start + body), length)
        if (this.#left === 0) this.#endFrame()
      }
    }
    if (from < end) this.#pass(chunk.subarray(from, end))
    if (taken > 0) this.#taken(taken)
  }

  #begin(head: Buffer, at: number): void {
    this.#left = head.readUIntBE(at, 3)
    this.#consumer = null
    const type = head[at + 3]
    if ((type !== DATA && type <= CONTINUATION) || this.#left > MAX_FRAME_BYTES) return
    this.#padding = 0
    if (type !== DATA) {
      this.#consumer = DROPPED
      this.#flags = 0
      return
    }
    this.#streamId = head.readUInt32BE(at + 5) & MAX_STREAM_ID
    this.#consumer = this.#consumers.get(this.#streamId) ?? null
    this.#flags = head[at + 4]
    this.#awaitsPadLength = this.#consumer !== null && this.#left > 0 && (this.#flags & PADDED) !== 0
  }

  /** Forwards END_STREAM as an empty frame, since http2 tracks the state of streams. */
  #endFrame(): void {
    this.#consumer = null
    if ((this.#flags & END_STREAM) === 0) return
    this.#pass(frame(DATA, END_STREAM, this.#streamId, 0))
  }
}

function frame(type: number, flags: number, streamId: number, length: number): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES + length)
  bytes.writeUIntBE(length, 0, 3)
  bytes[3] = type
  bytes[4] = flags
  bytes.writeUInt32BE(streamId, 5)
  return bytes
}

/** A WINDOW_UPDATE frame. @param streamId 0: the connection's window @source RFC 9113 §6.9 */
export function windowUpdate(streamId: number, bytes: number): Buffer {
  const update = frame(WINDOW_UPDATE, 0, streamId, 4)
  update.writeUInt32BE(bytes, HEAD_BYTES)
  return update
}
