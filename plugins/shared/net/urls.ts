/** Helpers for URLs. */
import type { WorkerEntry } from '#kernel'

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]'])

/** Whether secrets may be sent to the URL: it uses TLS or a loopback address. */
export function isSecureUrl({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK.has(hostname))
}

/** Removes trailing slashes in linear time; a regular expression would be quadratic. */
export function trimSlashes(text: string): string {
  let end = text.length
  while (end > 0 && text.charCodeAt(end - 1) === 0x2f) end--
  return text.slice(0, end)
}

/** URL of a worker's engine, which all of its data-parallel ranks share. */
export function engineUrl({
  url,
  dataParallel,
}: Pick<WorkerEntry, 'url'> & Partial<Pick<WorkerEntry, 'dataParallel'>>): string {
  return dataParallel?.baseUrl ?? url
}
