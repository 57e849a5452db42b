/** Bounds the number of distinct label values that clients can cause. */

/** Label of values beyond the limit. */
export const OTHER = 'other'

const MAX_LABEL_LENGTH = 200
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f]/

/** Admits the first `max` distinct values; later ones become `other`. */
export class LabelLimit {
  readonly #admitted = new Set<string>()
  /** May be changed; admitted values stay. */
  max: number

  constructor(max: number) {
    this.max = max
  }

  /** @returns the label; `other` also for values that are too long or contain control characters */
  admit(value: string): string {
    if (this.#admitted.has(value)) return value
    if (this.#admitted.size >= this.max) return OTHER
    if (value.length > MAX_LABEL_LENGTH || CONTROL_CHARACTER.test(value)) return OTHER
    this.#admitted.add(value)
    return value
  }
}

/** Distinct model labels per thread. */
const MAX_MODELS = 1_000

/** The limit of the `model` label; one instance is shared by all metrics of a thread. */
export function modelLabelLimit(): LabelLimit {
  return new LabelLimit(MAX_MODELS)
}
