/** The problems of a configuration, each with its position. */
import type { Finding } from './check-section.ts'
import type { ConfigSource } from './config-source.ts'
import type { Setting } from './settings.ts'

export interface ConfigProblem {
  /** Dotted path of the setting, such as `kernel.port`; empty for the whole file. */
  readonly path: string
  /** Completes a sentence that begins with the path. */
  readonly text: string
  /** `weir.yaml:3:5`, `--port` or `WEIR_PORT`; null for a default. */
  readonly where: string | null
}

/** An invalid configuration. The command prints it without a stack and exits with 2. */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    super(problems.map(describeProblem).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** One line: position, path and problem. */
export function describeProblem(problem: ConfigProblem): string {
  const sentence = problem.path === '' ? problem.text : `${problem.path} ${problem.text}`
  return problem.where === null ? sentence : `${problem.where}: ${sentence}`
}

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
    for (const problem of problems) this.#all.set(problem.path, problem)
  }

  throwIfAny(): void {
    if (this.#all.size > 0) throw new ConfigError([...this.#all.values()])
  }

  /** The last flag or variable that set the value, else its place in the file. */
  #placeOf(path: readonly string[]): string | null {
    const setting = this.#settings.findLast((item) => item.path.every((key, index) => path[index] === key))
    return setting?.origin ?? this.#source?.locate(path) ?? null
  }
}
