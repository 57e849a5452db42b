/** A plugin that replaces a secret in every text of every answer, also one that comes in pieces. */
import type { Plugin, TextEditor } from '#kernel'
import { plugin } from './hooked-gateway.ts'

export const SECRET = 'SECRET-42'
export const MASK = '[masked]'

class Redactor implements TextEditor {
  #held = ''

  edit(text: string, isLast: boolean): string {
    const all = (this.#held + text).replaceAll(SECRET, MASK)
    const kept = isLast ? 0 : lengthOfStart(all)
    this.#held = all.slice(all.length - kept)
    return all.slice(0, all.length - kept)
  }
}

/** Characters at the end that a secret may begin with. */
function lengthOfStart(text: string): number {
  for (let length = Math.min(SECRET.length - 1, text.length); length > 0; length--)
    if (SECRET.startsWith(text.slice(-length))) return length
  return 0
}

/** @param isAsynchronous every piece is edited in a later turn */
export function redactorPlugin(isAsynchronous = false): Plugin {
  return plugin('redactor', (host) => {
    host.hook(
      'onText',
      () => {
        const redactor = new Redactor()
        if (!isAsynchronous) return redactor
        return {
          edit: (text, isLast) =>
            new Promise((resolve) => setImmediate(() => resolve(redactor.edit(text, isLast)))),
        }
      },
      { scope: 'all', routes: ({ access }) => access === 'api' },
    )
  })
}
