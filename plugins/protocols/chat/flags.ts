/** Flags of the chat plugin. */
import type { ConfigFlag } from '#kernel'

export const chatFlags: readonly ConfigFlag[] = [
  {
    flag: 'validate',
    path: ['plugins', 'chat', 'validate'],
    kind: 'text',
    placeholder: 'how',
    help: 'routing: check what routing needs; full: check every documented rule of a body',
  },
]
