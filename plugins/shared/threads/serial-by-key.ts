/** Runs tasks of the same key one after the other, in the order of the calls; a failed task does not stop later ones. */
export class SerialByKey {
  readonly #last = new Map<string, Promise<unknown>>()

  /** Resolves or rejects as the task does. */
  async run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    const before = this.#last.get(key) ?? Promise.resolve()
    const run = before.then(task, task)
    this.#last.set(key, run)
    try {
      return await run
    } finally {
      if (this.#last.get(key) === run) this.#last.delete(key)
    }
  }
}
