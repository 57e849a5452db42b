/** Errors of the data directory at startup. */
import { defineErrors } from '#kernel'

export const storageErrors = defineErrors('storage', {
  storage_locked: {
    kind: 'internal',
    source: 'gateway',
    text: (dir: string) =>
      `the data directory ${dir} is in use by another process; stop that process or set another storage.dir`,
  },
  storage_unreadable: {
    kind: 'internal',
    source: 'gateway',
    text: (dir: string, problem: string) => `cannot open the data directory ${dir}: ${problem}`,
  },
})
