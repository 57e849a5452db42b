/** Scripted answers, used in the order in which they were added. */
import { simErrors } from './errors.ts'
import type { ScriptedAnswer } from './wire.ts'

export class ScriptedAnswers {
  #answers: ScriptedAnswer[] = []

  /** @throws empty_answer (400) if it has no content */
  add(answer: ScriptedAnswer): void {
    const { text, reasoning, refusal, tool_calls: calls, body } = answer
    if ([text, reasoning, refusal, calls, body].every((part) => part === undefined)) {
      throw simErrors.empty_answer()
    }
    this.#answers.push({ ...answer })
  }

  take(path: string): ScriptedAnswer | null {
    if (this.#answers.length === 0) return null
    const found = this.#answers.find(({ match }) => match.path === undefined || match.path === path)
    if (found === undefined) return null
    found.count -= 1
    if (found.count === 0) this.#answers = this.#answers.filter((other) => other !== found)
    return found
  }

  list(): readonly ScriptedAnswer[] {
    return this.#answers
  }

  clear(): void {
    this.#answers = []
  }
}
