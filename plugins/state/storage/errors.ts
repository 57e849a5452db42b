/** Errors of the data directory that stop the boot; all others are those of every store. */
import { defineErrors } from '#kernel'

export const storageErrors = defineErrors('storage', {
  storage_locked: {
    kind: 'internal',
    source: 'gateway',
    text: (dir: string) =>
      `the data directory ${dir} is in use by another process; stop that one or set another storage.dir`,
  },
  storage_unreadable: {
    kind: 'internal',
    source: 'gateway',
    text: (dir: string, problem: string) => `cannot open the data directory ${dir}: ${problem}`,
  },
})
