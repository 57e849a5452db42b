/** The page of the engines over HTTP, from their descriptions. */
import { ENGINES } from '../../../plugins/workers/http/engines/index.ts'
import { DIFFERENCES } from '../../real/engines/differences.ts'
import { toPage } from './tables.ts'

/** Requests of the matrix with other responses through the gateway, by the reason. */
function differencesOf(name: string): string[] {
  const found = Object.entries(DIFFERENCES).find(([engine]) => engine === name)?.[1] ?? {}
  const byReason = Map.groupBy(Object.entries(found), ([, reason]) => reason)
  const lines = [...byReason].map(
    ([reason, requests]) => `  - ${requests.map(([request]) => `\`${request}\``).join(', ')}: ${reason}`,
  )
  return lines.length === 0
    ? []
    : ['- Requests of the matrix whose responses differ through the gateway:', ...lines]
}

export function enginesPage(): string {
  const sections = ENGINES.map(({ name, tried, owners, loadSources, avoidedApis = [], notes = [] }) => {
    const facts = [
      `- Recognized by: ${owners.length > 0 ? `\`owned_by\` ${owners.map((owner) => `\`${owner}\``).join(', ')}` : 'its routes or model list'}`,
      `- Versions tried: ${tried ?? 'none in the matrix; simulated, or described from its responses'}`,
      `- Load: ${loadSources.length > 0 ? loadSources.map((source) => `\`${source}\``).join(', then ') : 'not reported'}`,
      ...(avoidedApis.length > 0 ? [`- Translated although native: ${avoidedApis.join(', ')}`] : []),
      ...notes.map((note) => `- ${note}`),
      ...differencesOf(name),
    ]
    return `## ${name}\n\n${facts.join('\n')}\n`
  })
  return toPage(
    'Engines',
    'Engines over HTTP by `runtime_type`. Others are `unspecified`, and served as OpenAI-compatible servers.',
    sections.join('\n'),
  )
}
