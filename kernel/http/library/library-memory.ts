/** Where the server library lies in the memory of this process, and what is written there. @source D213; proc(5) */
import { closeSync, openSync, readFileSync, readSync, writeSync } from 'node:fs'

interface Mapping {
  readonly start: number
  readonly end: number
}

export class LibraryMemory {
  readonly #memory: number
  readonly #mappings: readonly Mapping[]

  private constructor(memory: number, mappings: readonly Mapping[]) {
    this.#memory = memory
    this.#mappings = mappings
  }

  /**
   * @param self what the system tells of this process, like `/proc/self`
   * @returns null where the library is not loaded
   * @throws Error where the system has no such files, or memory may not be written
   */
  static open(self: string): LibraryMemory | null {
    const mappings = readFileSync(`${self}/maps`, 'latin1')
      .split('\n')
      .filter((line) => /\/uws[^/]*\.node$/.test(line))
      .map(toMapping)
    return mappings.length === 0 ? null : new LibraryMemory(openSync(`${self}/mem`, 'r+'), mappings)
  }

  close(): void {
    closeSync(this.#memory)
  }

  /** Where the file begins; its addresses count from there. */
  get base(): number {
    return this.#mappings[0].start
  }

  /** What is relocated lies in the last mappings of a file: what is read-only since, and what can be written. */
  get tables(): readonly Mapping[] {
    return this.#mappings.slice(-2)
  }

  /** Fewer bytes where memory ends before. */
  read(address: number, length: number): Buffer {
    const bytes = Buffer.alloc(length)
    return bytes.subarray(0, readSync(this.#memory, bytes, 0, length, address))
  }

  write(bytes: Buffer, address: number): void {
    if (writeSync(this.#memory, bytes, 0, bytes.length, address) !== bytes.length)
      throw new Error('written in part')
  }
}

function toMapping(line: string): Mapping {
  const [start, end] = line.split(/[- ]/, 2)
  return { start: Number.parseInt(start, 16), end: Number.parseInt(end, 16) }
}
