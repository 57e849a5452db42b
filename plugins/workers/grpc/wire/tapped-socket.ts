/**
 * The socket of an HTTP/2 connection as Node's http2 gets it: without the data that is read here, which would cost it
 * more than all that follows. @hot
 */
import type { Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { DataFrames, type DataTaker, windowUpdate } from './data-frames.ts'

export class TappedSocket extends Duplex {
  readonly #socket: Socket
  readonly #frames: DataFrames
  readonly #windowBytes: number
  #untold = 0

  /** @param windowBytes of the connection */
  constructor(socket: Socket, windowBytes: number) {
    super()
    this.#socket = socket
    this.#windowBytes = windowBytes
    this.#frames = new DataFrames(
      (bytes) => {
        if (!this.push(bytes)) socket.pause()
      },
      (bytes) => this.#took(bytes),
    )
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => this.#frames.push(chunk))
    socket.on('end', () => this.push(null))
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
  }

  /** From now on the stream's data goes to the taker. */
  tap(streamId: number, taker: DataTaker): void {
    this.#frames.add(streamId, taker)
  }

  untap(streamId: number): void {
    this.#frames.remove(streamId)
  }

  /** The reader of the stream has taken so much of its window. */
  giveBack(streamId: number, bytes: number): void {
    // What is written here and what http2 writes are whole frames both.
    if (this.#socket.writable) this.#socket.write(windowUpdate(streamId, bytes))
  }

  /** Readers have windows of their own: what a slow one leaves must not hold back the others. */
  #took(bytes: number): void {
    this.#untold += bytes
    if (this.#untold * 2 < this.#windowBytes) return
    this.giveBack(0, this.#untold)
    this.#untold = 0
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
