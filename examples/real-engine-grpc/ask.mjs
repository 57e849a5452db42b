/** A chat with the real model through the gateway: whole, streamed, with a stop, with tools, and one that is given up. */
import OpenAI from 'openai'

const client = new OpenAI({
  baseURL: process.env.WEIR_URL ?? 'http://127.0.0.1:30004/v1',
  apiKey: process.env.WEIR_API_KEY ?? 'weir-demo-key',
})
const messages = [{ role: 'user', content: process.argv[2] ?? 'Name three colours.' }]
const asked = { model: 'smollm2', messages, temperature: 0, max_tokens: Number(process.env.TOKENS ?? 24) }
const tools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      parameters: { type: 'object', properties: { city: { type: 'string' } } },
    },
  },
]

// The gateway may still be loading the tokenizer: the client retries up to ten times.
const whole = await client.chat.completions.create(asked, { maxRetries: 10 })
console.log('whole:', whole.choices[0].message.content, whole.usage)

let text = ''
for await (const chunk of await client.chat.completions.create({ ...asked, stream: true }))
  text += chunk.choices[0]?.delta?.content ?? ''
console.log('streamed:', text === whole.choices[0].message.content ? 'the same' : text)

// This engine knows stops as token ids only; stop strings are refused.
const refusal = await client.chat.completions.create({ ...asked, stop: ['\n'] }).catch((error) => error)
console.log('stop string:', refusal.status, refusal.code)
const { choices } = await client.chat.completions.create({ ...asked, stop_token_ids: [28], logprobs: true })
console.log('stop id:', choices[0].message.content, choices[0].finish_reason)

const called = await client.chat.completions.create({ ...asked, tools, tool_choice: 'auto' })
console.log('tools:', called.choices[0].message.tool_calls ?? 'the model answered without a call')

const leaving = new AbortController()
const endless = { ...asked, max_tokens: 2000, ignore_eos: true, stream: true }
const stream = await client.chat.completions.create(endless, { signal: leaving.signal })
for await (const _ of stream) {
  leaving.abort()
  break
}
console.log('given up after a token')

const embedding = await client.embeddings.create({ model: 'smollm2', input: 'a' }).catch((error) => error)
console.log('embeddings:', embedding.status, embedding.code)
