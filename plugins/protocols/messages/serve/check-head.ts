/**
 * What is checked of a body that goes to a worker as it is: the members without which it is no messages request, on the
 * bytes. All else is the worker's to judge, so that nothing it may know is refused here.
 */

import { skipSpace } from '#kernel'
import { type Member, topLevelMembers } from '#shared'
import { invalidField } from '../errors.ts'

const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const MAX_DIGITS = 15

/**
 * @returns whether tool servers are named
 * @throws invalid_field (400) naming `max_tokens` or `messages`
 */
export function checkHead(body: Buffer, needsMaxTokens: boolean): boolean {
  const members = topLevelMembers(body) ?? []
  const messages = members.findLast(({ name }) => name === 'messages')
  if (messages === undefined) throw invalidField('messages', 'field required')
  if (
    body[messages.valueStart] !== OPEN_BRACKET ||
    body[skipSpace(body, messages.valueStart + 1)] === CLOSE_BRACKET
  )
    throw invalidField('messages', 'must be a list with at least one message')
  if (needsMaxTokens) checkMaxTokens(body, members)
  return members.some(({ name }) => name === 'mcp_servers')
}

function checkMaxTokens(body: Buffer, members: readonly Member[]): void {
  const maxTokens = members.findLast(({ name }) => name === 'max_tokens')
  if (maxTokens === undefined) throw invalidField('max_tokens', 'field required')
  const { valueStart, valueEnd } = maxTokens
  for (let at = valueStart; at < valueEnd; at++) {
    const isDigit = body[at] >= 0x30 && body[at] <= 0x39
    if (!isDigit || valueEnd - valueStart > MAX_DIGITS)
      throw invalidField('max_tokens', 'must be a whole number of at least 0')
  }
}
