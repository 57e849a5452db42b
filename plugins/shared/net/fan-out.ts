/** Runs `run` on every item, at most `maxParallel` at a time. Results are in order of the items; `run` must not reject. */
export async function fanOut<Item, Result>(
  items: readonly Item[],
  maxParallel: number,
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length)
  let next = 0
  const lane = async () => {
    for (let index = next++; index < items.length; index = next++) results[index] = await run(items[index])
  }
  await Promise.all(Array.from({ length: Math.min(maxParallel, items.length) }, lane))
  return results
}

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
