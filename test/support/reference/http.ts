/** The HTTP reference, generated from the declared routes. */
import type { RouteDefinition } from '#kernel'
import { code, toPage, toTable } from './tables.ts'

const CREDENTIALS: Readonly<Record<RouteDefinition['access'], string>> = {
  public: 'none',
  api: 'API key',
  admin: 'control-plane key',
}

export function httpPage(routes: readonly RouteDefinition[]): string {
  const shown = routes.filter(({ docs }) => docs.isHidden !== true)
  const tags = [...Map.groupBy(shown, ({ docs }) => docs.tag)].sort(([a], [b]) => (a < b ? -1 : 1))
  return toPage(
    'HTTP API reference',
    'Every route of the plugins of the catalog. `GET /openapi.json` (plugin `openapi`) describes the fields of the enabled routes.',
    ...tags.map(([tag, group]) => `## ${tag}\n\n${tableOf(group)}`),
  )
}

function tableOf(routes: readonly RouteDefinition[]): string {
  return toTable(
    ['route', 'credential', 'summary', 'responses'],
    routes.map(({ method, path, access, docs }) => [
      code(`${method} ${path.replace(/:(\w+)/g, '{$1}')}`),
      CREDENTIALS[access],
      docs.summary,
      Object.keys(docs.responses).join(', '),
    ]),
  )
}
