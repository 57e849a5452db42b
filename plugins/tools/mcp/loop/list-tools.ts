/** Lists the tools of all servers of a turn in parallel, and reports them in the order of the request. */
import { createHash } from 'node:crypto'
import type { ListedServer, ListedTool } from '#kernel'
import { ToolServerError, toToolServerError } from '../connection/tool-server-error.ts'
import { mcpErrors } from '../errors.ts'
import type { OpenServer } from '../tools/open-server.ts'
import type { ServerWithTools } from './offered-tools.ts'
import type { TurnOutput } from './turn-output.ts'

/** @throws connect_mcp_server_failed, internal_tools_failed (424) at the first server that fails; no further events follow */
export async function listTools(
  servers: readonly OpenServer[],
  listed: readonly ListedServer[],
  output: TurnOutput,
): Promise<ServerWithTools[]> {
  // All run in parallel and are awaited in order, so none may reject before it is awaited.
  const results = servers.map((server) => server.tools().catch(toToolServerError))
  const found: ServerWithTools[] = []
  for (const [i, server] of servers.entries()) {
    const seen = findListed(server, listed)
    // A list that the client may already know is announced only if it differs.
    let isShown = !server.plan.isHidden && seen === null
    if (isShown) begin(server, output)
    const tools = await results[i]
    if (tools instanceof ToolServerError) throw reportFailure(server, isShown, tools, output)
    const fingerprint = fingerprintOf(server.plan.place, tools)
    if (seen !== null && seen.fingerprint !== null && seen.fingerprint !== fingerprint) {
      begin(server, output)
      isShown = true
    }
    const { label } = server.plan
    if (isShown) output.emit({ type: 'list_done', choice: 0, label, tools, fingerprint })
    found.push({ server, tools })
  }
  return found
}

function begin({ plan: { label } }: OpenServer, output: TurnOutput): void {
  output.emit({ type: 'list_started', choice: 0, label })
}

function findListed({ plan }: OpenServer, listed: readonly ListedServer[]): ListedServer | null {
  if (plan.isHidden) return null
  return listed.find(({ label }) => label.toLowerCase() === plan.label.toLowerCase()) ?? null
}

function reportFailure(server: OpenServer, isShown: boolean, failure: ToolServerError, output: TurnOutput) {
  const { label, isHidden, builtIn } = server.plan
  if (isHidden || builtIn !== null) return mcpErrors.internal_tools_failed()
  const { type, code, message } = failure
  if (!isShown) begin(server, output)
  output.emit({ type: 'list_failed', choice: 0, label, error: { type, code, message } })
  return mcpErrors.connect_mcp_server_failed.with({ param: 'tools' }, label, message)
}

/** Fingerprints by list; a connection returns the same array until its list changes. */
const fingerprints = new WeakMap<readonly ListedTool[], { readonly place: string; readonly text: string }>()

/** Fingerprint of a tool list, which clients keep between turns. */
function fingerprintOf(place: string, tools: readonly ListedTool[]): string {
  const known = fingerprints.get(tools)
  if (known?.place === place) return known.text
  const text = hashNames(place, tools)
  fingerprints.set(tools, { place, text })
  return text
}

function hashNames(place: string, tools: readonly ListedTool[]): string {
  const hash = createHash('sha256').update(place)
  for (const { name } of tools) hash.update(`\0${name}`)
  return hash.digest('base64url').slice(0, 22)
}
