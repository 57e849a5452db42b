/** A tool server as a program: the gateway starts it and speaks with it over standard input and output. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const server = new Server({ name: 'clock', version: '1.0.0' }, { capabilities: { tools: {} } })

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [
    {
      name: 'time_in',
      description: 'Tells the time in a zone such as Europe/Berlin.',
      inputSchema: { type: 'object', properties: { zone: { type: 'string' } } },
      annotations: { readOnlyHint: true },
    },
  ],
}))

server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
  const timeZone = params.arguments?.zone ?? 'UTC'
  return { content: [{ type: 'text', text: new Date().toLocaleTimeString('en-GB', { timeZone }) }] }
})

await server.connect(new StdioServerTransport())
