/** Flags of the proxy. */
import type { ConfigFlag } from '#kernel'

export const proxyFlags: readonly ConfigFlag[] = [
  {
    flag: 'validate',
    env: null,
    path: ['plugins', 'proxy', 'validate'],
    kind: 'text',
    placeholder: 'how',
    help: 'routing: check what routing needs; full: check every documented rule of a body',
  },
]
