/**
 * The session of a request: the first of the configured headers and members of the body that has a value.
 * @hot
 */
import { eachMember, type PickRequest } from '#kernel'

/** A longer value identifies no session. */
const MAX_VALUE_BYTES = 1_024
const QUOTE = 0x22
const OPEN_BRACE = 0x7b
const HEADER = 'header:'
const BODY = 'body:'

/** The gateway's own headers, those of Codex (two versions), Claude Code and others; then what the APIs define. */
export const DEFAULT_SESSION_KEYS: readonly string[] = Object.freeze([
  'header:x-weir-routing-key',
  'header:x-smg-routing-key',
  'header:session-id',
  'header:session_id',
  'header:x-claude-code-session-id',
  'header:x-session-id',
  'body:prompt_cache_key',
  'body:conversation',
  'body:user',
])

export class SessionKeys {
  readonly headers: readonly string[]
  readonly readsBody: boolean
  readonly #sources: readonly string[]

  /** @param sources `header:<name>` and `body:<member>`, in order */
  constructor(sources: readonly string[]) {
    this.#sources = sources
    this.headers = sources
      .filter((source) => source.startsWith(HEADER))
      .map((source) => source.slice(HEADER.length))
    this.readsBody = this.headers.length < sources.length
  }

  /** Empty if the request has none. */
  of(request: PickRequest): string {
    let members: ReadonlyMap<string, string> | null = null
    for (const source of this.#sources) {
      let key: string | undefined
      if (source.startsWith(BODY)) {
        members ??= this.#membersIn(request.body)
        key = members.get(source)
      } else key = request.header(source.slice(HEADER.length))
      if (key !== undefined && key !== '') return key
    }
    return ''
  }

  /** By source. */
  #membersIn(body: Buffer | null): ReadonlyMap<string, string> {
    const found = new Map<string, string>()
    if (body === null) return found
    for (const { name, valueStart: start, valueEnd: end } of eachMember(body)) {
      const source = BODY + name
      if (!this.#sources.includes(source) || end - start > MAX_VALUE_BYTES) continue
      // A conversation may be an object with its id.
      if (body[start] === QUOTE || body[start] === OPEN_BRACE)
        found.set(source, body.toString('utf8', start, end).replace(/^""$/, ''))
    }
    return found
  }
}
