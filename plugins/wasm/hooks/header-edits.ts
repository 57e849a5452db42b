/** Header changes of guests: checks them, and applies them in the order the interface promises. */
import type { HeaderPair, ModifyAction } from '../../../wasm-sdk/abi.ts'
import { PROTECTED_HEADERS } from '../../../wasm-sdk/abi.ts'
import type { EditKind, HeaderEdits } from '../threads/guest-task.ts'

const TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
// biome-ignore lint/suspicious/noControlCharactersInRegex: line ends and NUL are what must not get through
const UNSAFE_VALUE = /[\u0000-\u0008\u000a-\u001f\u007f]/
/** The gateway writes it itself. */
const REPLY_PROTECTED = new Set([...PROTECTED_HEADERS, 'x-request-id'])
const REQUEST_PROTECTED = new Set(PROTECTED_HEADERS)

/** Collects the edits of one output; what may not be is left out and counted. */
export class EditList {
  readonly edits: string[] = []
  dropped = 0
  readonly #protected: ReadonlySet<string>

  constructor(isReply: boolean) {
    this.#protected = isReply ? REPLY_PROTECTED : REQUEST_PROTECTED
  }

  add(kind: EditKind, givenName: string, value: string): void {
    const name = givenName.toLowerCase()
    if (!TOKEN.test(name) || this.#protected.has(name) || UNSAFE_VALUE.test(value)) this.dropped++
    else this.edits.push(kind, name, value)
  }

  /** Set, then add, then remove. @source wasm facts 5 */
  addAll({ headers_set, headers_add, headers_remove }: ModifyAction): void {
    for (const [name, value] of headers_set ?? []) this.add('set', name, value)
    for (const [name, value] of headers_add ?? []) this.add('add', name, value)
    for (const name of headers_remove ?? []) this.add('remove', name, '')
  }

  /** Headers of a reply: a name that comes again is repeated, what was there before is replaced. */
  addReply(headers: readonly HeaderPair[]): void {
    const seen = new Set<string>()
    for (const [name, value] of headers) {
      const lower = name.toLowerCase()
      this.add(seen.has(lower) ? 'add' : 'set', name, value)
      seen.add(lower)
    }
  }
}

/** The flat list with the edits applied; the given one is not changed. */
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
