/** Command-line flags and environment variables of the storage plugin. */
import type { ConfigFlag } from '#kernel'

export const storageFlags: readonly ConfigFlag[] = [
  {
    flag: 'data-dir',
    env: 'WEIR_DATA_DIR',
    path: ['plugins', 'storage', 'dir'],
    kind: 'text',
    placeholder: 'folder',
    help: 'data directory for records; enables the storage plugin',
  },
]
