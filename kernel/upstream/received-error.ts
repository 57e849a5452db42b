/** What a worker sent with a failed attempt, as a text for operators: bounded and without credentials. */
import type { WorkerErrorText } from '../contracts/hook.ts'

/** Bytes of an error body that are read. */
const MAX_BODY_BYTES = 1_024
/** Longest text, characters. */
const MAX_TEXT = 300

/** Control characters, and those that change the direction of text. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu
/** Values of fields and headers with the name of a credential, also after `provided`. */
const NAMED =
  /((?:api[-_ ]?key|token|secret|password|passwd|authorization|cookie|credentials?)(?: \w{1,12}){0,2}["']? ?[:=] ?["']?)(?!\[redacted\])[^\s"',;&}]{4,}/gi
const SCHEME = /\b(bearer|basic) [\w.~+/=-]{6,}/gi
/** Keys by their usual prefixes. */
const PREFIXED = /\b(?:sk|pk|rk|hf|gsk|xai|ghp|glpat|eyJ|AIza|AKIA)[-_]?[\w.*-]{8,}/g
/** Long runs of letters and digits are keys, hashes or parts of tokens. */
const OPAQUE = /\b(?=[A-Za-z]*\d)[A-Za-z0-9]{24,}\b/g
const REDACTED = '[redacted]'

/**
 * The text of a worker's error for operators: bounded, on one line, without credentials.
 * @param secrets values to remove wherever they occur, such as the worker's key; those under 4 characters are ignored
 */
export function redact(text: string, secrets: readonly string[]): string {
  let safe = text.replace(CONTROLS, ' ').trim()
  for (const secret of secrets) if (secret.length >= 4) safe = safe.replaceAll(secret, REDACTED)
  safe = safe
    .replace(SCHEME, `$1 ${REDACTED}`)
    .replace(NAMED, `$1${REDACTED}`)
    .replace(PREFIXED, REDACTED)
    .replace(OPAQUE, REDACTED)
  return safe.length > MAX_TEXT ? `${safe.slice(0, MAX_TEXT - 1)}…` : safe
}

/** An error that is being received. */
export class ReceivedError implements WorkerErrorText {
  readonly workerUrl: string
  readonly #what: string
  readonly #secrets: readonly string[]
  #body: Buffer[] | null = []
  #byteCount = 0
  #text = ''

  /** @param what the status, or the kind and message of a failure */
  constructor(workerUrl: string, what: string, secrets: readonly string[]) {
    this.workerUrl = workerUrl
    this.#what = what
    this.#secrets = secrets
  }

  /** @param chunk copied as far as it is kept */
  take(chunk: Buffer): void {
    if (this.#body === null || this.#byteCount >= MAX_BODY_BYTES) return
    const kept = Buffer.from(chunk.subarray(0, MAX_BODY_BYTES - this.#byteCount))
    this.#byteCount += kept.length
    this.#body.push(kept)
  }

  /** Final from the first read on. */
  get text(): string {
    if (this.#body !== null) {
      // The end of a body that is cut may be half a key.
      const isCut = this.#byteCount >= MAX_BODY_BYTES
      const body = Buffer.concat(this.#body).toString('utf8')
      const whole = isCut ? body.slice(0, body.search(/\S*$/)) : body
      this.#text = redact(whole === '' ? this.#what : `${this.#what}: ${whole}`, this.#secrets)
      this.#body = null
    }
    return this.#text
  }
}
