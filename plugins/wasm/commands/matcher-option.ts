/** `--match`: which requests a module is for, as a registration says it. */

import { CliError } from '../../cli/cli-error.ts'
import type { ModuleDescriptor } from '../wire.ts'

type Match = NonNullable<ModuleDescriptor['match']>

const LISTS = ['routes', 'models', 'tenants'] as const
const HEADER = /^header:([^=]+)$/

/**
 * @param pairs such as `models=gpt-*,demo`, `header:x-team=red` and `share=0.1`
 * @returns null when nothing was given @throws CliError naming what is none of these
 */
export function readMatch(pairs: readonly string[] = []): Match | null {
  if (pairs.length === 0) return null
  const match: Match = {}
  for (const pair of pairs) {
    const split = pair.indexOf('=')
    const member = split < 1 ? pair : pair.slice(0, split)
    const value = split < 1 ? '' : pair.slice(split + 1)
    const list = LISTS.find((name) => name === member)
    const [, header] = member.match(HEADER) ?? []
    if (value === '') throw new CliError(`--match must be member=value (got ${pair})`)
    if (list !== undefined)
      match[list] = [...(match[list] ?? []), ...value.split(',').map((one) => one.trim())]
    else if (header !== undefined) match.headers = { ...match.headers, [header]: value }
    else if (member === 'share') match.share = readShare(value)
    else
      throw new CliError(
        `--match: there is no ${member}; it is one of ${LISTS.join(', ')}, header:NAME and share`,
      )
  }
  return match
}

function readShare(text: string): number {
  const share = Number(text)
  if (share >= 0 && share <= 1) return share
  throw new CliError(`--match share must be between 0 and 1 (got ${text})`)
}
