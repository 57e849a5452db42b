/** Keeps label values that clients can influence from growing without bound. */

/** What all values beyond the limit are counted as. */
export const OTHER = 'other'

const MAX_LABEL_LENGTH = 200
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/

/** Admits the first `max` distinct values as they are; later ones become `other`. */
export class LabelLimit {
  readonly #admitted = new Set<string>()
  readonly #max: number

  constructor(max: number) {
    this.#max = max
  }

  /** The label to count under. Values that are overlong or hold control characters are `other` too. */
  admit(value: string): string {
    if (this.#admitted.has(value)) return value
    if (this.#admitted.size >= this.#max) return OTHER
    if (value.length > MAX_LABEL_LENGTH || CONTROL_CHARACTER.test(value)) return OTHER
    this.#admitted.add(value)
    return value
  }
}

/** Distinct model names per thread that have series of their own. */
const MAX_MODELS = 1_000

/** The limit of the `model` label; one instance is shared by all metrics of a thread. */
export function modelLabelLimit(): LabelLimit {
  return new LabelLimit(MAX_MODELS)
}
