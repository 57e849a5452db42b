/**
 * Separates the prefix caches of tenants in engines: an engine reuses a cached prompt only for requests with the same salt,
 * so neither the time to the first token nor `cached_tokens` shows what another tenant has sent.
 */
import { hash } from 'node:crypto'
import { eachMember, type OutgoingAttempt, type RequestContext, tenantOf } from '#kernel'

/** Engines that take salts. @source vLLM and SGLang API references, `cache_salt`; SGLang `/generate`, `extra_key` */
const SALTED: ReadonlySet<string> = new Set(['sglang', 'vllm'])
const MEMBER = 'cache_salt'
const NATIVE_PATH = '/generate'
const NATIVE_MEMBER = 'extra_key'
/** Routes whose prompts are cached. */
const GENERATING = /\/(?:chat\/completions|completions|responses|messages|generate)(?:\?|$)/
const QUOTE = 0x22

/** Adds the salt of the tenant to the body of an attempt; a salt of the client separates further within its tenant. */
export function saltCache(ctx: RequestContext, attempt: OutgoingAttempt): void {
  const { worker, path, body } = attempt
  if (body === null || worker.connectionMode !== 'http' || !SALTED.has(worker.runtimeType)) return
  if (!GENERATING.test(path)) return
  const member = path.startsWith(NATIVE_PATH) ? NATIVE_MEMBER : MEMBER
  attempt.body = withSalt(body, member, saltOf(tenantOf(ctx)))
}

/** The same on every gateway; its length is fixed, so that what a client adds cannot make it the salt of another tenant. */
export function saltOf(tenant: string): string {
  return hash('sha256', `cache-salt:${tenant}`, 'base64url')
}

export function withSalt(body: Buffer, member: string, salt: string): Buffer {
  const parts: Buffer[] = []
  let from = 0
  let isEmpty = true
  for (const { name, valueStart: start, valueEnd: end } of eachMember(body)) {
    isEmpty = false
    if (name !== member) continue
    const own = body[start] === QUOTE ? body.toString('utf8', start + 1, end - 1) : ''
    parts.push(body.subarray(from, start), Buffer.from(`"${salt}${own}"`))
    from = end
  }
  if (parts.length > 0) return Buffer.concat([...parts, body.subarray(from)])
  const inside = body.indexOf('{') + 1
  const added = Buffer.from(`"${member}":"${salt}"${isEmpty ? '' : ','}`)
  return Buffer.concat([body.subarray(0, inside), added, body.subarray(inside)])
}
