/** Headers of the Messages format, for workers that speak it. */
import type { HeaderList, RequestContext } from '#kernel'

export const MESSAGES_VERSION_HEADER = 'anthropic-version'
const BETA_HEADER = 'anthropic-beta'
/** Whom a vendor is to count the request for. */
const SCOPE_HEADERS = ['anthropic-user-profile-id', 'anthropic-workspace-id'] as const

/** To be declared by whoever calls `messagesHeaders`: only those are kept of a request. */
export const MESSAGES_HEADERS: readonly string[] = [MESSAGES_VERSION_HEADER, BETA_HEADER, ...SCOPE_HEADERS]
/** What a client means that names no version. */
const CLASSIC_VERSION = '2023-06-01'

/** What the client says of version, betas and scope; several lines of betas are one list, as a worker gets one line. */
export function messagesHeaders(ctx: RequestContext): HeaderList {
  const headers = [MESSAGES_VERSION_HEADER, ctx.header(MESSAGES_VERSION_HEADER) ?? CLASSIC_VERSION]
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
