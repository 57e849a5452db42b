// A tiny engine for the example: answers ASK with the words of the question, one a line. PORT and MODEL by arguments.
import { createServer } from 'node:net'
import { createInterface } from 'node:readline'

const [port = '9006', model = 'parrot'] = process.argv.slice(2)
const server = createServer((socket) => {
  socket.on('error', () => socket.destroy())
  createInterface({ input: socket }).on('line', (line) => {
    if (line === 'PING') return socket.write(`PONG ${model}\n`)
    const question = line.startsWith('ASK ') ? JSON.parse(line.slice(4)).messages.at(-1).content : ''
    const words = question.split(' ').filter(Boolean)
    for (const [index, word] of words.entries()) socket.write(`WORD ${index === 0 ? '' : ' '}${word}\n`)
    socket.write(`DONE ${words.length} ${words.length}\n`)
  })
})
server.listen(Number(port), '127.0.0.1', () => console.log(`listening on ${server.address().port}`))
process.on('SIGTERM', () => process.exit(0))
