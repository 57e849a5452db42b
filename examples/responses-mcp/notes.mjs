/** A tool server over HTTP: notes that a model may write and read, for as long as the process runs. */
import { createServer } from 'node:http'
import { toNodeHandler } from '@modelcontextprotocol/node'
import { createMcpHandler, Server } from '@modelcontextprotocol/server'

const notes = []
const text = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }

const tools = {
  read_notes: {
    about: {
      description: 'Gives all notes.',
      inputSchema: { type: 'object' },
      annotations: { readOnlyHint: true },
    },
    run: () => notes.join('\n') || 'There are no notes yet.',
  },
  add_note: {
    about: { description: 'Keeps a note.', inputSchema: text },
    run: ({ text }) => `That makes ${notes.push(text)}.`,
  },
}

function makeServer() {
  const server = new Server({ name: 'notes', version: '1.0.0' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', () => ({
    tools: Object.entries(tools).map(([name, { about }]) => ({ name, ...about })),
  }))
  server.setRequestHandler('tools/call', ({ params }) => {
    const said = tools[params.name].run(params.arguments ?? {})
    return { content: [{ type: 'text', text: said }] }
  })
  return server
}

// Each request gets a new server; the notes are shared. Clients of older revisions are served too.
const http = createServer(toNodeHandler(createMcpHandler(makeServer)))

http.listen(Number(process.env.PORT ?? 9200), '127.0.0.1', () => {
  console.log(`notes on http://127.0.0.1:${http.address().port}/mcp`)
})
