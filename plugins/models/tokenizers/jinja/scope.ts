/** Variables of a rendering, and the text that it writes. */
import { concat, Undefined, type Value } from './values.ts'

/** Variables of a block; those of the blocks around it can be read. */
export class Scope {
  readonly parent: Scope | null
  readonly #variables: Map<string, Value>

  constructor(parent: Scope | null, variables = new Map<string, Value>()) {
    this.parent = parent
    this.#variables = variables
  }

  find(name: string): Value {
    for (let scope: Scope | null = this; scope !== null; scope = scope.parent) {
      const value = scope.#variables.get(name)
      if (value !== undefined) return value
    }
    return new Undefined(`'${name}' is undefined`)
  }

  set(name: string, value: Value): void {
    this.#variables.set(name, value)
  }
}

export class Output {
  text = ''

  /** @throws RenderLimitExceeded */
  write(text: string): void {
    this.text = concat(this.text, text)
  }
}
