/**
 * Collects work for the pool and hands it over in batches, one for each thread at most: what arrives in one turn of the
 * loop, or while all threads are busy, goes together, since a message costs more than a call.
 */
export abstract class Batcher<Waiting> {
  /** The longest waiting first. */
  protected waiting: Waiting[] = []
  readonly #maxUnderWay: number
  #underWay = 0
  #isScheduled = false

  /** @param threads of the pool: as many batches are under way at most */
  constructor(threads: number) {
    this.#maxUnderWay = threads
  }

  /** Takes the next batch out of `waiting`; may give an empty one. @param fairShare of an idle thread */
  protected abstract takeBatch(fairShare: number): Waiting[]
  /** Runs a batch; what has to start again is put back into `waiting` and scheduled. Never rejects. */
  protected abstract send(batch: readonly Waiting[]): Promise<void>

  /** At the end of the turn: whatever else arrives in it goes along. */
  protected schedule(): void {
    if (this.#isScheduled || this.#underWay >= this.#maxUnderWay) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#flush()
    })
  }

  #flush(): void {
    while (this.waiting.length > 0 && this.#underWay < this.#maxUnderWay) {
      const batch = this.takeBatch(Math.ceil(this.waiting.length / (this.#maxUnderWay - this.#underWay)))
      if (batch.length === 0) continue
      this.#underWay++
      void this.send(batch).finally(() => {
        this.#underWay--
        this.#flush()
      })
    }
  }
}
