interface Link<Args extends unknown[]> {
  callback: ((...args: Args) => void) | null
}

/**
 * The functions that the server library calls. The library never frees an app and keeps its functions; it gets functions
 * that reach these through a link, so that a closed server and everything it refers to can be collected.
 */
export class LibraryCallbacks {
  readonly #releases: (() => void)[] = []

  /** @returns a function for the library, which calls this one until `release` */
  add<Args extends unknown[]>(callback: (...args: Args) => void): (...args: Args) => void {
    const link: Link<Args> = { callback }
    this.#releases.push(() => {
      link.callback = null
    })
    return follow(link)
  }

  /** Call after the apps have closed. */
  release(): void {
    for (const release of this.#releases.splice(0)) release()
  }
}

/** Not part of `add`: the returned function must not share a scope with the callback. */
function follow<Args extends unknown[]>(link: Link<Args>): (...args: Args) => void {
  return (...args) => link.callback?.(...args)
}
