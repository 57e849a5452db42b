/** A tool server as a program: the gateway starts it and speaks with it over standard input and output. */
import { Server } from '@modelcontextprotocol/server'
import { serveStdio } from '@modelcontextprotocol/server/stdio'

serveStdio(() => {
  const server = new Server({ name: 'clock', version: '1.0.0' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', () => ({
    tools: [
      {
        name: 'time_in',
        description: 'Tells the time in a zone such as Europe/Berlin.',
        inputSchema: { type: 'object', properties: { zone: { type: 'string' } } },
        annotations: { readOnlyHint: true },
      },
    ],
  }))
  server.setRequestHandler('tools/call', ({ params }) => {
    const timeZone = params.arguments?.zone ?? 'UTC'
    return { content: [{ type: 'text', text: new Date().toLocaleTimeString('en-GB', { timeZone }) }] }
  })
  return server
})
