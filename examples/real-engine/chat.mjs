/** A streamed chat with the real model, through the gateway. */
import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: process.env.WEIR_URL ?? 'http://127.0.0.1:30003/v1',
  apiKey: process.env.WEIR_API_KEY ?? 'weir-demo-key',
})
const question = process.argv[2] ?? 'Name three colours.'

const stream = await client.chat.completions.create({
  model: 'smollm2',
  messages: [{ role: 'user', content: question }],
  max_tokens: 64,
  stream: true,
})
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta?.content ?? '')
process.stdout.write('\n')
