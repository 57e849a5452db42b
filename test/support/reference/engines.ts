/** The page of the engines over HTTP, from their descriptions. */
import { ENGINES } from '../../../plugins/workers/http/engines/index.ts'
import { toPage } from './tables.ts'

export function enginesPage(): string {
  const sections = ENGINES.map(({ name, tried, owners, loadSources, avoidedApis = [], notes = [] }) => {
    const facts = [
      `- Recognized by: ${owners.length > 0 ? `\`owned_by\` ${owners.map((owner) => `\`${owner}\``).join(', ')}` : 'its routes or model list'}`,
      `- Versions tried: ${tried ?? 'none in the matrix; simulated, or described from its responses'}`,
      `- Load: ${loadSources.length > 0 ? loadSources.map((source) => `\`${source}\``).join(', then ') : 'not reported'}`,
      ...(avoidedApis.length > 0 ? [`- Translated although native: ${avoidedApis.join(', ')}`] : []),
      ...notes.map((note) => `- ${note}`),
    ]
    return `## ${name}\n\n${facts.join('\n')}\n`
  })
  return toPage(
    'Engines',
    'Engines over HTTP by `runtime_type`. Others are `unspecified`, and served as OpenAI-compatible servers.',
    sections.join('\n'),
  )
}
