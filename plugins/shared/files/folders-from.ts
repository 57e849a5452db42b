/** Search of a file or folder from one folder upwards, as Node does for `node_modules`. */
import { dirname } from 'node:path'

/** The folder and those above it, up to the root. @param folder absolute */
export function* foldersFrom(folder: string): Generator<string> {
  for (let current = folder; ; current = dirname(current)) {
    yield current
    if (dirname(current) === current) return
  }
}
