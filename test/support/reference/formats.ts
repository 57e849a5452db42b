/** The reference of what becomes of members on their way to workers of other formats, from measured outcomes. */
import { code, toPage, toTable } from './tables.ts'

/** Of one member, by the format of the worker. */
export interface MemberOutcomes {
  readonly path: string
  readonly outcomes: readonly string[]
}

export function answersPage(
  sections: ReadonlyMap<string, readonly MemberOutcomes[]>,
  clients: readonly string[],
): string {
  return toPage(
    'Answers',
    `What becomes of every member, kind and value of the answers in the types of the SDKs \`openai\` and \`@anthropic-ai/sdk\`, and of members, kinds and values that the types do not have (\`some_new_…\`), measured by answers of workers that differ in it alone. Each type is listed once, at its shortest path; \`[kind]\` is the \`type\` (or \`role\`) of an object.`,
    toTable(
      ['outcome', 'meaning'],
      [
        ['passes', 'the client gets it unchanged'],
        ['→ `member`', 'it is in this member of the client’s answer'],
        ['named', 'left out, and named in `x-weir-warning` or in a comment of the stream'],
        ['other texts', 'why the client does not get it'],
      ],
    ),
    ...sectionsOf(
      sections,
      clients.map((client) => `${client} clients`),
    ),
  )
}

export function formatsPage(
  sections: ReadonlyMap<string, readonly MemberOutcomes[]>,
  workers: readonly string[],
): string {
  return toPage(
    'Formats',
    `What becomes of every optional member, kind and value of the request types of the SDKs \`openai\` and \`@anthropic-ai/sdk\`, measured by requests that differ in it alone. Each type is listed once, at its shortest path; \`[kind]\` is the \`type\` (or \`role\`) of an object.`,
    toTable(
      ['outcome', 'meaning'],
      [
        ['passes', 'the worker gets it unchanged'],
        ['→ `member`', 'translated to this member of the worker’s format'],
        ['named', 'left out, and named in the response header `x-weir-warning`'],
        ['rejected', 'a 400 that names it'],
        ['other texts', 'why the worker does not get it'],
        ['–', 'part of an object that is rejected'],
      ],
    ),
    ...sectionsOf(
      sections,
      workers.map((worker) => `${worker} workers`),
    ),
  )
}

function sectionsOf(
  sections: ReadonlyMap<string, readonly MemberOutcomes[]>,
  columns: readonly string[],
): string[] {
  return [...sections].flatMap(([title, members]) => [
    `## ${title}`,
    toTable(['member', ...columns], rowsOf(members)),
  ])
}

/** Members of one group with the same outcomes share a row. */
function rowsOf(members: readonly MemberOutcomes[]): string[][] {
  const rows = new Map<string, { group: string; paths: string[]; outcomes: readonly string[] }>()
  for (const { path, outcomes } of members) {
    const group = /^[^.:[]+(?:\[[^\]]*\])?/.exec(path)?.[0] ?? path
    const key = JSON.stringify([group, outcomes])
    const row = rows.get(key) ?? { group, paths: [], outcomes }
    rows.set(key, row)
    row.paths.push(path.slice(group.length))
  }
  return [...rows.values()].map(({ group, paths, outcomes }) => [
    `${code(group)}${paths.join('') === '' ? '' : `: ${withValues(paths).map(code).join(', ')}`}`,
    ...outcomes,
  ])
}

/** Values of one member are joined. */
function withValues(paths: readonly string[]): string[] {
  const values = new Map<string, string[]>()
  for (const path of paths) {
    const [member, value] = path.split(': ')
    values.set(member, [...(values.get(member) ?? []), ...(value === undefined ? [] : [value])])
  }
  return [...values].map(([member, all]) => {
    const name = member === '' ? '(the member)' : member
    return all.length === 0 ? name : `${name}: ${all.join(' ')}`
  })
}
