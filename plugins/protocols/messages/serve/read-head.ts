/** What is read of every request before its body: the version of the format, and which model is meant. */

import type { RequestContext } from '#kernel'
import { MESSAGES_VERSION_HEADER as VERSION_HEADER, withMembers } from '#shared'
import { invalidField } from '../errors.ts'
import type { ModelNames } from './model-names.ts'

/** What a request says before anybody reads its body. */
export interface MessageHead {
  /** The client's name for the model. */
  readonly named: string
  /** The operator's. */
  readonly model: string
}

const DATE = /^\d{4}-\d{2}-\d{2}$/

/**
 * Puts the operator's model into the body where the client's name stands for another.
 *
 * @throws invalid_field (400) naming the header or `model`; json_parse_error (400)
 */
export function readHead(ctx: RequestContext, names: ModelNames): MessageHead {
  const version = ctx.header(VERSION_HEADER)
  if (version !== undefined && !DATE.test(version))
    throw invalidField(VERSION_HEADER, 'must be a date such as 2023-06-01')
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

/** Path on a worker that speaks the format, with the client's query: `?beta=true` says which fields it may know. */
export function targetPath({ path, query }: RequestContext): string {
  return query === '' ? path : `${path}?${query}`
}
