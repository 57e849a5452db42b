/** What is read of every request before its body: version and beta headers, and which model is meant. */
import { withMembers } from '#contracts'
import type { RequestContext } from '#kernel'
import { invalidField } from './errors.ts'
import type { ModelNames } from './model-names.ts'

export const VERSION_HEADER = 'anthropic-version'
export const BETA_HEADER = 'anthropic-beta'
const DATE = /^\d{4}-\d{2}-\d{2}$/

/**
 * Puts the operator's model into the body where the client's name stands for another.
 *
 * @throws invalid_field (400) naming the header or `model`; json_parse_error (400)
 */
export function readHead(ctx: RequestContext, names: ModelNames): { named: string; model: string } {
  const version = ctx.header(VERSION_HEADER)
  if (version !== undefined && !DATE.test(version))
    throw invalidField(VERSION_HEADER, 'must be a date such as 2023-06-01')
  joinBetas(ctx)
  const { model: named } = ctx.peek()
  if (named === null) throw invalidField('model', 'field required')
  if (named === '') throw invalidField('model', 'must be a text that is not empty')
  const model = names.resolve(named)
  if (model !== named) {
    const changed = withMembers(ctx.bodyBytes, new Map([['model', JSON.stringify(model)]]))
    if (changed !== null) ctx.setBody(changed)
  }
  return { named, model }
}

/** A worker gets one header of a name: several lines become one list. */
function joinBetas(ctx: RequestContext): void {
  const { requestHeaders } = ctx
  let joined = ''
  let count = 0
  for (let at = 0; at < requestHeaders.length; at += 2) {
    if (requestHeaders[at] !== BETA_HEADER) continue
    joined += (count++ === 0 ? '' : ',') + requestHeaders[at + 1]
  }
  if (count > 1) ctx.changeHeader('set', BETA_HEADER, joined)
}

/** Path on a worker that speaks the format, with the client's query: `?beta=true` says which fields it may know. */
export function targetPath({ path, query }: RequestContext): string {
  return query === '' ? path : `${path}?${query}`
}
