/** Headers of formats: request headers of the Messages API, and the response header of warnings. */
import { type ExtraHeaders, type HeaderList, type RequestContext, WARNING_HEADER } from '#kernel'

export const MESSAGES_VERSION_HEADER = 'anthropic-version'
const BETA_HEADER = 'anthropic-beta'
/** Billing scope at the vendor. */
const SCOPE_HEADERS = ['anthropic-user-profile-id', 'anthropic-workspace-id'] as const

/** Request headers that routes calling `messagesHeaders` must declare. */
export const MESSAGES_HEADERS: readonly string[] = [MESSAGES_VERSION_HEADER, BETA_HEADER, ...SCOPE_HEADERS]
/** Version of clients that send none. */
const DEFAULT_VERSION = '2023-06-01'

/** Version, beta and scope headers for the worker; several beta headers are joined into one. */
export function messagesHeaders(ctx: RequestContext): HeaderList {
  const headers = [MESSAGES_VERSION_HEADER, ctx.header(MESSAGES_VERSION_HEADER) ?? DEFAULT_VERSION]
  const betas = joinedBetas(ctx.requestHeaders)
  if (betas !== '') headers.push(BETA_HEADER, betas)
  for (const name of SCOPE_HEADERS) {
    const value = ctx.header(name)
    if (value !== undefined) headers.push(name, value)
  }
  return headers
}

function joinedBetas(received: readonly string[]): string {
  let joined = ''
  for (let at = 0; at < received.length; at += 2)
    if (received[at] === BETA_HEADER) joined += (joined === '' ? '' : ',') + received[at + 1]
  return joined
}

const MAX_NAMES = 20
const NAME = /^[A-Za-z0-9_.-]{1,64}$/

/** @returns one header for all warnings; none without warnings */
export function warningHeader(warnings: readonly string[]): ExtraHeaders {
  return warnings.length === 0 ? [] : [WARNING_HEADER, warnings.join(', ')]
}

/**
 * The warning for members of a body that cannot be translated for the model's workers. Names that do not fit in a header
 * are only counted.
 * @returns no warning without such members
 */
export function ignoredMembers(paths: readonly string[]): string[] {
  if (paths.length === 0) return []
  const names = paths.filter((path) => NAME.test(path)).slice(0, MAX_NAMES)
  return [`members_ignored; count=${paths.length}; names="${names.join(' ')}"`]
}
