/** Lets so many pieces of work run at once, whoever starts them; the others wait their turn. */

export class Limiter {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(maxRunning: number) {
    this.#free = maxRunning
  }

  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }
}
