/** How a request ended, as text for test failures. */
import type { SseStream } from './sse-client.ts'

/** Such as `503 no_available_workers`, or `200, whole`. */
export type Ending = string

export const COMPLETE = '200, whole'

export function endingOfStream(stream: SseStream): Ending {
  if (stream.status !== 200) return `${stream.status} ${errorCode(stream.text())}`
  if (!stream.isWhole) {
    const code = errorCode(stream.events.at(-1)?.data ?? '')
    return code === null ? '200, cut' : `200, cut behind error event ${code}`
  }
  if (stream.headers.get('content-type')?.startsWith('text/event-stream') !== true)
    return isJson(stream.text()) ? COMPLETE : '200, whole, not JSON'
  return `${COMPLETE}${eventsEnding(stream.events.map(({ data }) => data))}`
}

function eventsEnding(events: readonly string[]): string {
  const last = events.at(-1) ?? ''
  const broken = events.slice(0, -1).filter((data) => !isJson(data)).length
  const code = errorCode(last)
  if (code !== null) return `, error event ${code}`
  if (last !== '[DONE]') return `, without an end: ${last}`
  return broken === 0
    ? ''
    : broken === 1
      ? ', one event that is not JSON'
      : `, ${broken} events that are not JSON`
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function errorCode(text: string): string | null {
  return isJson(text) ? ((JSON.parse(text) as { error?: { code?: string } }).error?.code ?? null) : null
}
