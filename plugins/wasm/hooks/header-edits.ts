/** Header changes of modules: checks them and applies them in the order that ABI.md defines. */
import { type HeaderPair, type ModifyAction, PROTECTED_HEADERS } from '../../../wasm-sdk/abi.ts'
import type { EditKind, HeaderEdits } from '../threads/guest-task.ts'

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: line ends and NUL are what must not get through
const UNSAFE_VALUE = /[\u0000-\u0008\u000a-\u001f\u007f]/
/** The gateway writes x-request-id itself. */
const RESPONSE_PROTECTED = new Set([...PROTECTED_HEADERS, 'x-request-id'])
const REQUEST_PROTECTED = new Set(PROTECTED_HEADERS)

/** Why a header change is dropped; null when it is applied. */
export function headerProblem(name: string, value: string, isResponse: boolean): string | null {
  if (!TOKEN.test(name)) return 'it is not a valid header name'
  if ((isResponse ? RESPONSE_PROTECTED : REQUEST_PROTECTED).has(name)) return 'the gateway sets it'
  return UNSAFE_VALUE.test(value) ? 'its value contains line breaks or other control characters' : null
}

/** Collects the edits of one output; invalid ones are dropped and counted. */
export class EditList {
  readonly edits: string[] = []
  dropped = 0
  readonly #isResponse: boolean

  constructor(isResponse: boolean) {
    this.#isResponse = isResponse
  }

  add(kind: EditKind, givenName: string, value: string): void {
    const name = givenName.toLowerCase()
    if (headerProblem(name, value, this.#isResponse) !== null) this.dropped++
    else this.edits.push(kind, name, value)
  }

  /** Set, then add, then remove. */
  addAll({ headers_set, headers_add, headers_remove }: ModifyAction): void {
    for (const [name, value] of headers_set ?? []) this.add('set', name, value)
    for (const [name, value] of headers_add ?? []) this.add('add', name, value)
    for (const name of headers_remove ?? []) this.add('remove', name, '')
  }

  /** Headers of a response: the first of a name replaces what was there, further ones are added. */
  addResponse(headers: readonly HeaderPair[]): void {
    const seen = new Set<string>()
    for (const [name, value] of headers) {
      const lower = name.toLowerCase()
      this.add(seen.has(lower) ? 'add' : 'set', name, value)
      seen.add(lower)
    }
  }
}

/** @returns a new flat list with the edits applied */
export function applyEdits(headers: readonly string[], edits: HeaderEdits): string[] {
  let result = [...headers]
  for (let i = 0; i < edits.length; i += 3) {
    const [kind, name, value] = [edits[i], edits[i + 1], edits[i + 2]]
    if (kind !== 'add') result = without(result, name)
    if (kind !== 'remove') result.push(name, value)
  }
  return result
}

function without(headers: readonly string[], name: string): string[] {
  const kept: string[] = []
  for (let i = 0; i < headers.length; i += 2) if (headers[i] !== name) kept.push(headers[i], headers[i + 1])
  return kept
}

const NOT_ASCII = /[^\t -~]/

/** Headers are written as latin1, so that UTF-8 is sent as its bytes. */
export function toWire(value: string): string {
  return NOT_ASCII.test(value) ? Buffer.from(value, 'utf8').toString('latin1') : value
}
