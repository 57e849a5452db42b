/** What became of a member of a request or an answer on its way to the other side. */
import { isDeepStrictEqual } from 'node:util'
import type { JsonObject, SdkCase } from './sdk-cases.ts'
import type { Json } from './sdk-types.ts'

/** A request as the worker got it and the response of the gateway, or an answer as the client got it. */
export interface Sent {
  readonly status: number
  /** Null if no worker got a request. */
  readonly body: Json
  readonly warning: string
  readonly error: string
}

/** Sends each body once: most bodies without a member are those of another case. */
export function oncePerBody(send: (body: JsonObject) => Promise<Sent>): (body: JsonObject) => Promise<Sent> {
  const results = new Map<string, Promise<Sent>>()
  return (body) => {
    const key = JSON.stringify(body)
    const result = results.get(key) ?? send(body)
    results.set(key, result)
    return result
  }
}

/** `passes`, `→ path`, `named`, `rejected`, `LOST`, or an error that does not name the member. */
export function outcomeOf({ path, isKind, body, before }: SdkCase, base: Sent, sent: Sent): string {
  const segments = path.split(/[.:[\]" ]+/)
  if (sent.status >= 400)
    return sent.status === 400 && sent.error.includes(segments[0])
      ? 'rejected'
      : `${sent.status} ${sent.error}`
  const changes = changesOf(base.body, sent.body)
  const isNamed = isNamedIn(sent.warning, segments)
  // What stands around a kind of object changes the request even if the object is left out.
  if (isNamed && (isKind || changes.length === 0)) return 'named'
  if (changes.length === 0) return 'LOST'
  if (isDeepStrictEqual(changesOf(before, body), changes)) return 'passes'
  return `→ \`${changes[0][0]}\``
}

/** Whether the warning names the member, or what it is part of. */
function isNamedIn(warning: string, segments: readonly string[]): boolean {
  const names = [...warning.matchAll(/names="([^"]*)"/g)].flatMap(([, all]) => all.split(' '))
  return names.some((name) => segments.includes(name.slice(name.lastIndexOf('.') + 1)))
}

type Change = readonly [path: string, value: Json | undefined]

/** Paths without indexes. */
function changesOf(from: Json | undefined, to: Json | undefined, path = ''): Change[] {
  if (isDeepStrictEqual(from, to)) return []
  if (isObject(from) && isObject(to)) {
    const names = new Set([...Object.keys(from), ...Object.keys(to)])
    return [...names].flatMap((name) =>
      changesOf(from[name], to[name], path === '' ? name : `${path}.${name}`),
    )
  }
  if (Array.isArray(from) && Array.isArray(to) && from.length === to.length)
    return to.flatMap((one, index) => changesOf(from[index], one, `${path}[]`))
  return [[path, to]]
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
