/** The hook reference, generated from the comments of the hook signatures. */
import { code, toPage, toTable } from './tables.ts'

/** Comment, name, and signature, which may take several lines. */
const HOOK = /\/\*\*([\s\S]*?)\*\/\s*(on\w+): ([\s\S]*?)\n(?= {2}\/\*\*|})/g

/** @param source text of `kernel/contracts/hook.ts` */
export function hooksPage(source: string): string {
  const body = source.slice(
    source.indexOf('export interface HookSignatures'),
    source.indexOf('export type HookName'),
  )
  const rows = [...body.matchAll(HOOK)].map(([, comment, name, signature]) => [
    code(name),
    code(toLine(signature)),
    comment.replace(/^\s*\*\s?/gm, ' ').trim(),
  ])
  return toPage(
    'Hook reference',
    'Hooks of plugins in the order of a request’s life. How to register one: [plugins](../guide/plugins.md).',
    toTable(['hook', 'signature', 'kind and time'], rows),
  )
}

function toLine(signature: string): string {
  return signature.replace(/\s+/g, ' ').replace('( ', '(').replace(', )', ')').trim()
}
