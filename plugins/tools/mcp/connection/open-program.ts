/** Starts a program and opens a connection over its standard input and output. */
import { ObservedProgram } from './observed-transport.ts'
import {
  handshake,
  ignore,
  makeClient,
  type OpenClient,
  type OpenParts,
  requestsOf,
} from './protocol-client.ts'
import type { StdioTarget } from './server-target.ts'

/** Of a line of standard error, characters. */
const MAX_LINE = 1_024

export async function openProgram(
  target: StdioTarget,
  { limits, listeners, prior }: OpenParts,
): Promise<OpenClient> {
  const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio')
  // Not within the time to connect: a program that starts slowly would get both first requests.
  const client = await makeClient(target, listeners, limits.connectMs * 2)
  const transport = new StdioClientTransport({
    command: target.command,
    args: [...target.args],
    env: { ...target.env },
    cwd: target.cwd,
    stderr: 'pipe',
    maxBufferSize: limits.maxMessageBytes,
  })
  readLines(transport.stderr, listeners.onProgramLine)
  const watched = new ObservedProgram(transport)
  const requests = requestsOf(client, watched, {
    posts: null,
    headers: () => [],
    answerWith: ignore,
    connectMs: limits.connectMs,
  })
  client.onclose = () => listeners.onClosed(null)
  await handshake(client, watched, limits.connectMs, prior)
  return { client, transport: 'stdio', requests, close: () => client.close().catch(ignore) }
}

function readLines(stream: NodeJS.EventEmitter | null, onLine: (line: string) => void): void {
  let rest = ''
  stream?.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString('utf8')).split('\n')
    rest = (lines.pop() ?? '').slice(0, MAX_LINE)
    for (const line of lines) if (line.trim() !== '') onLine(line.slice(0, MAX_LINE))
  })
}
