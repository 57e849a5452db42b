/** Flags and variables of the data directory. */
import type { ConfigFlag } from '#kernel'

export const storageFlags: readonly ConfigFlag[] = [
  {
    flag: 'data-dir',
    env: 'WEIR_DATA_DIR',
    path: ['plugins', 'storage', 'dir'],
    kind: 'text',
    placeholder: 'folder',
    help: 'keep records in this folder; enables the storage plugin',
  },
]
