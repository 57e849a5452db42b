/** Names of models as clients use them, and the operator's models that they stand for. */

export class ModelNames {
  readonly #exact: ReadonlyMap<string, string>
  /** Beginnings, the longest first. */
  readonly #beginnings: readonly (readonly [beginning: string, model: string])[]

  /** @param names the setting `models` */
  constructor(names: Readonly<Record<string, string>>) {
    const all = Object.entries(names)
    this.#exact = new Map(all.filter(([name]) => !name.endsWith('*')))
    this.#beginnings = all
      .filter(([name]) => name.endsWith('*'))
      .map(([name, model]) => [name.slice(0, -1), model] as const)
      .sort(([a], [b]) => b.length - a.length)
  }

  /** @returns the name itself where nothing is said of it */
  resolve(name: string): string {
    return this.#exact.get(name) ?? this.#beginnings.find(([start]) => name.startsWith(start))?.[1] ?? name
  }

  /** Names that can be listed, with what each stands for. */
  get listed(): Iterable<readonly [name: string, model: string]> {
    return this.#exact
  }
}
