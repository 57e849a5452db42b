/** Collects the problems of a configuration and finds their positions. */
import type { Finding } from './check-section.ts'
import { type CheckedSections, ConfigError, type ConfigProblem } from './config-error.ts'
import type { ConfigSource } from './config-source.ts'
import type { Setting } from './settings.ts'

/** Keeps the first problem of each path. */
export class ProblemList {
  readonly #source: ConfigSource | null
  readonly #settings: readonly Setting[]
  readonly #all = new Map<string, ConfigProblem>()

  /** @param settings in ascending order of precedence */
  constructor(source: ConfigSource | null, settings: readonly Setting[]) {
    this.#source = source
    this.#settings = settings
  }

  /** @param isSecret omits the value */
  add(finding: Finding, isSecret = false): void {
    const path = finding.path.join('.')
    if (this.#all.has(path)) return
    const got = finding.got === undefined || isSecret ? '' : `, got ${finding.got}`
    this.#all.set(path, { path, text: finding.text + got, where: this.#placeOf(finding.path) })
  }

  /** @param secrets paths whose values are not shown */
  addAll(findings: readonly Finding[], secrets: readonly (readonly string[])[]): void {
    const hidden = new Set(secrets.map((path) => path.join('.')))
    for (const finding of findings) this.add(finding, hidden.has(finding.path.join('.')))
  }

  keep(problems: readonly ConfigProblem[]): void {
    for (const problem of problems) this.#all.set(problem.path || String(problem.where), problem)
  }

  throwIfAny(sections: CheckedSections | null = null): void {
    if (this.#all.size > 0) throw new ConfigError([...this.#all.values()], sections)
  }

  /** The last flag or variable that set the value, else its place in the file. */
  #placeOf(path: readonly string[]): string | null {
    const setting = this.#settings.findLast((item) => item.path.every((key, index) => path[index] === key))
    return setting?.origin ?? this.#source?.locate(path) ?? null
  }
}
