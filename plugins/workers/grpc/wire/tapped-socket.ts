/**
 * The socket of an HTTP/2 connection for Node's http2, without the DATA frames that are extracted here. @hot
 */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { DataFrames, windowUpdate } from './data-frames.ts'

export class TappedSocket extends Duplex {
  /** The streams whose data is extracted. */
  readonly frames: DataFrames
  readonly #socket: Socket
  readonly #windowBytes: number
  #unreleased = 0

  /** @param windowBytes flow-control window of the connection */
  constructor(socket: Socket, windowBytes: number) {
    super()
    this.#socket = socket
    this.#windowBytes = windowBytes
    this.frames = new DataFrames(
      (bytes) => {
        if (!this.push(bytes)) socket.pause()
      },
      (bytes) => this.#took(bytes),
    )
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.frames.push(chunk))
    socket.on('end', () => this.push(null))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
  }

  /** Sends a WINDOW_UPDATE for the stream. */
  releaseWindow(streamId: number, bytes: number): void {
    // Safe to interleave, since http2 writes whole frames too.
    if (this.#socket.writable) this.#socket.write(windowUpdate(streamId, bytes))
  }

  /** Releases the connection's window independently of readers, so that a slow one does not block the others. */
  #took(bytes: number): void {
    this.#unreleased += bytes
    if (this.#unreleased * 2 < this.#windowBytes) return
    this.releaseWindow(0, this.#unreleased)
    this.#unreleased = 0
  }

  override _read(): void {
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done)
  }

  override _writev(chunks: readonly { chunk: Buffer }[], done: (error?: Error | null) => void): void {
    this.#socket.cork()
    const last = chunks.length - 1
    for (let i = 0; i < last; i++) this.#socket.write(chunks[i].chunk)
    this.#socket.write(chunks[last].chunk, done)
    this.#socket.uncork()
  }

  override _final(done: () => void): void {
    this.#socket.end()
    done()
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy()
    done(error)
  }
}
