/** The official OpenAI client against the gateway: whole, streamed, tools, abort, embeddings, models. */
import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: process.env.WEIR_URL ?? 'http://127.0.0.1:30000/v1',
  apiKey: process.env.WEIR_API_KEY ?? 'weir-demo-key',
})
const model = process.env.WEIR_MODEL ?? 'sim-1'
const messages = [{ role: 'user', content: 'What is the weather in Bern?' }]

const models = await client.models.list()
console.log('models:', models.data.map(({ id }) => id).join(', '))

const answer = await client.chat.completions.create({ model, messages })
console.log('whole:', answer.choices[0].message.content)

let chunks = 0
for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
  if (chunk.choices[0]?.delta?.content) chunks++
}
console.log('streamed:', chunks, 'chunks')

const tools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
]
const called = await client.chat.completions.create({ model, messages, tools, tool_choice: 'required' })
const [toolCall] = called.choices[0].message.tool_calls ?? []
console.log('tool call:', toolCall?.function.name, toolCall?.function.arguments)

const stream = await client.chat.completions.create({ model, messages, stream: true })
for await (const _ of stream) {
  stream.controller.abort()
  break
}
console.log('aborted:', stream.controller.signal.aborted)

const embedding = await client.embeddings.create({ model, input: 'Hello' })
console.log('embedding:', embedding.data[0].embedding.length, 'dimensions')
