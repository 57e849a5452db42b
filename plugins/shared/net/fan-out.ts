/** Limits how many tasks run at once; the others wait in order. */
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

/** Runs `run` on every item, at most `maxParallel` at a time. Results are in order of the items. */
export function fanOut<Item, Result>(
  items: readonly Item[],
  maxParallel: number,
  run: (item: Item, place: number) => Promise<Result>,
): Promise<Result[]> {
  const limiter = new Limiter(maxParallel)
  return Promise.all(items.map((item, place) => limiter.run(() => run(item, place))))
}
