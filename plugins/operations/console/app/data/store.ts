/** A value that components follow. */
import { useEffect, useState } from 'preact/hooks'

export class Store<T> {
  value: T
  readonly #followers = new Set<(value: T) => void>()

  constructor(initial: T) {
    this.value = initial
  }

  set(value: T): void {
    if (Object.is(this.value, value)) return
    this.value = value
    for (const follower of [...this.#followers]) follower(value)
  }

  /** @returns ends the subscription */
  follow(follower: (value: T) => void): () => void {
    this.#followers.add(follower)
    return () => this.#followers.delete(follower)
  }
}

/** The current value; the component renders again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(() => store.value)
  useEffect(() => {
    setValue(() => store.value)
    return store.follow((next) => setValue(() => next))
  }, [store])
  return value
}
