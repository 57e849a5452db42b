/** The request of the page as a command and as programs. The key is read from the environment. */
import type { Format, Prompt } from './formats.ts'

export const LANGUAGES = ['curl', 'Python', 'TypeScript'] as const
export type Language = (typeof LANGUAGES)[number]

/** @param origin address of the gateway */
export function snippet(language: Language, origin: string, format: Format, prompt: Prompt): string {
  const body = format.body(prompt)
  if (language === 'curl') return curl(origin, format, body)
  return language === 'Python' ? python(origin, format, body) : typescript(origin, format, body)
}

function curl(origin: string, { name, path }: Format, body: Record<string, unknown>): string {
  const credential = name === 'messages' ? 'x-api-key: $WEIR_API_KEY' : 'authorization: Bearer $WEIR_API_KEY'
  const quoted = JSON.stringify(body).replaceAll("'", "'\\''")
  return [
    `curl -N ${origin}${path} \\`,
    `  -H "${credential}" -H 'content-type: application/json' \\`,
    `  -d '${quoted}'`,
  ].join('\n')
}

const CALLS: Readonly<Record<string, string>> = {
  chat: 'chat.completions.create',
  responses: 'responses.create',
  messages: 'messages.create',
}

function python(origin: string, { name }: Format, body: Record<string, unknown>): string {
  const isMessages = name === 'messages'
  const [library, client] = isMessages ? ['anthropic', 'Anthropic'] : ['openai', 'OpenAI']
  const members = Object.entries(body).map(([member, value]) => `    ${member}=${toPython(value)},`)
  const result = body.stream === true ? 'for event in answer:\n    print(event)' : 'print(answer)'
  return [
    'import os',
    '',
    `from ${library} import ${client}`,
    '',
    `client = ${client}(base_url=${JSON.stringify(isMessages ? origin : `${origin}/v1`)}, api_key=os.environ["WEIR_API_KEY"])`,
    `answer = client.${CALLS[name]}(`,
    ...members,
    ')',
    result,
    '',
  ].join('\n')
}

/** JSON is Python except for three words. */
function toPython(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(toPython).join(', ')}]`
  if (value !== null && typeof value === 'object')
    return `{${Object.entries(value)
      .map(([name, member]) => `${JSON.stringify(name)}: ${toPython(member)}`)
      .join(', ')}}`
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  return value === null ? 'None' : JSON.stringify(value)
}

function typescript(origin: string, { name }: Format, body: Record<string, unknown>): string {
  const isMessages = name === 'messages'
  const [library, client] = isMessages ? ['@anthropic-ai/sdk', 'Anthropic'] : ['openai', 'OpenAI']
  const result =
    body.stream === true ? 'for await (const event of answer) console.log(event)' : 'console.log(answer)'
  return [
    `import ${client} from '${library}'`,
    '',
    `const client = new ${client}({`,
    `  baseURL: ${JSON.stringify(isMessages ? origin : `${origin}/v1`)},`,
    '  apiKey: process.env.WEIR_API_KEY,',
    '})',
    `const answer = await client.${CALLS[name]}(${JSON.stringify(body, null, 2)})`,
    result,
    '',
  ].join('\n')
}
