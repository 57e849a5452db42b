/** Writes values of the binary format into a growing buffer. */
export class ByteWriter {
  #bytes = new Uint8Array(1_024)
  length = 0

  byte(value: number): void {
    if (this.length === this.#bytes.length) this.#room(1)
    this.#bytes[this.length++] = value
  }

  all(values: readonly number[]): void {
    for (const value of values) this.byte(value)
  }

  copy(bytes: Uint8Array, from = 0, to = bytes.length): void {
    const count = to - from
    this.#room(count)
    // Faster than `set` for a few bytes.
    if (count < 16) for (let i = from; i < to; i++) this.#bytes[this.length++] = bytes[i]
    else {
      this.#bytes.set(bytes.subarray(from, to), this.length)
      this.length += count
    }
  }

  u32(value: number): void {
    let rest = value
    while (rest >= 0x80) {
      this.byte((rest % 128) | 0x80)
      rest = Math.floor(rest / 128)
    }
    this.byte(rest)
  }

  /** A signed number that fits into 53 bits. */
  signed(value: number): void {
    let rest = value
    for (;;) {
      const low = ((rest % 128) + 128) % 128
      rest = (rest - low) / 128
      if ((rest === 0 && low < 0x40) || (rest === -1 && low >= 0x40)) {
        this.byte(low)
        return
      }
      this.byte(low | 0x80)
    }
  }

  /** Reserves space for a number of at most 34 bits. @returns its offset, for `fill` */
  later(): number {
    const place = this.length
    this.all([0x80, 0x80, 0x80, 0x80, 0])
    return place
  }

  /** @param value 0 to 2^34 - 1 */
  fill(place: number, value: number): void {
    let rest = value
    for (let i = 0; i < 5; i++) {
      this.#bytes[place + i] = (rest % 128) | (i < 4 ? 0x80 : 0)
      rest = Math.floor(rest / 128)
    }
  }

  name(text: string): void {
    const bytes = Buffer.from(text)
    this.u32(bytes.length)
    this.copy(bytes)
  }

  /** A view, valid until the next write. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.length)
  }

  clear(): void {
    this.length = 0
  }

  #room(count: number): void {
    if (this.length + count <= this.#bytes.length) return
    const larger = new Uint8Array(Math.max(this.#bytes.length * 2, this.length + count))
    larger.set(this.#bytes.subarray(0, this.length))
    this.#bytes = larger
  }
}
