/** Which formats of clients an HTTP worker takes as they come. */
import type { Info, Inquiry } from './inquiry.ts'

/** What every OpenAI-compatible engine is asked as it comes; what one lacks, it refuses itself. */
export const ENGINE_APIS: readonly string[] = [
  'chat',
  'completions',
  'generate',
  'embeddings',
  'classify',
  'rerank',
]

/** APIs that only some engines have: told by the paths in their own description. */
const API_OF_PATH: readonly (readonly [path: string, api: string])[] = [
  ['/v1/messages', 'messages'],
  ['/v1/responses', 'responses'],
]

/** Of services, by name; any other takes what engines do, but for `generate`, which is theirs alone. */
const APIS_OF_SERVICE: ReadonlyMap<string, readonly string[]> = new Map([
  ['anthropic', ['messages']],
  ['openai', ['chat', 'completions', 'embeddings', 'responses']],
])
const SERVICE_APIS = ENGINE_APIS.filter((api) => api !== 'generate')

/** @param provider name of the service; null when nobody says */
export function apisOfService(provider: string | null): readonly string[] {
  return (provider === null ? undefined : APIS_OF_SERVICE.get(provider)) ?? SERVICE_APIS
}

export async function discoverApis(inquiry: Inquiry): Promise<readonly string[]> {
  const paths = pathsOf(await inquiry.find('/openapi.json'))
  return [...ENGINE_APIS, ...API_OF_PATH.filter(([path]) => paths.has(path)).map(([, api]) => api)]
}

/** Paths that take requests with a body. */
function pathsOf(description: Info | null): ReadonlySet<string> {
  const paths = description?.paths
  if (typeof paths !== 'object' || paths === null) return new Set()
  return new Set(API_OF_PATH.map(([path]) => path).filter((path) => takesPost(paths, path)))
}

function takesPost(paths: object, path: string): boolean {
  if (!Object.hasOwn(paths, path)) return false
  const item: unknown = (paths as Record<string, unknown>)[path]
  return typeof item === 'object' && item !== null && Object.hasOwn(item, 'post')
}
