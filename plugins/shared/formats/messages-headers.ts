/** Request headers of the Messages API. */
import type { HeaderList, RequestContext } from '#kernel'

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
