/** Faults and answers that are scripted in advance: the first one that matches a request is used, as often as it counts. */
import { simErrors } from './errors.ts'
import { type Fault, NO_FAULT, parseFault } from './faults.ts'
import { Random } from './random.ts'
import type { FaultRule, ScriptedAnswer } from './wire.ts'

class Scripts<Script extends { count: number }> {
  #scripts: Script[] = []

  add(script: Script): void {
    this.#scripts.push({ ...script })
  }

  protected use(matches: (script: Script) => boolean): Script | null {
    const found = this.#scripts.find(matches)
    if (found === undefined) return null
    found.count -= 1
    if (found.count === 0) this.#scripts = this.#scripts.filter((other) => other !== found)
    return found
  }

  list(): readonly Script[] {
    return this.#scripts
  }

  clear(): void {
    this.#scripts = []
  }
}

export class ScriptedFaults extends Scripts<FaultRule> {
  readonly #random: Random

  constructor(seed: number) {
    super()
    this.#random = new Random(seed)
  }

  /** @throws unknown_fault (400) */
  override add(rule: FaultRule): void {
    parseFault(rule.fault)
    super.add(rule)
  }

  /** @param isServing whether the request is a POST of the serving API, to which rules without a path apply */
  take(path: string, isServing: boolean): Fault {
    const rule = this.use(({ match, probability }) => {
      if (match.path === undefined ? !isServing : match.path !== path) return false
      return probability === 1 || this.#random.next() < probability
    })
    return rule === null ? NO_FAULT : parseFault(rule.fault)
  }
}

export class ScriptedAnswers extends Scripts<ScriptedAnswer> {
  /** @throws empty_answer (400) if it has no content */
  override add(answer: ScriptedAnswer): void {
    const { text, reasoning, refusal, tool_calls: calls, body } = answer
    if ([text, reasoning, refusal, calls, body].every((part) => part === undefined)) {
      throw simErrors.empty_answer()
    }
    super.add(answer)
  }

  take(path: string): ScriptedAnswer | null {
    return this.use(({ match }) => match.path === undefined || match.path === path)
  }
}
