/** The response header that lists parts of a request without effect. */
import type { ExtraHeaders } from '#kernel'

const WARNING_HEADER = 'x-weir-warning'
const MAX_NAMES = 20
const NAME = /^[A-Za-z0-9_.-]{1,64}$/

/** @returns one header for all warnings; none without warnings */
export function warningHeader(warnings: readonly string[]): ExtraHeaders {
  return warnings.length === 0 ? [] : [WARNING_HEADER, warnings.join(', ')]
}

/**
 * The warning for members of a body that cannot be translated for the model's workers. Names that do not fit in a header
 * are only counted.
 * @returns no warning without such members
 */
export function ignoredMembers(paths: readonly string[]): string[] {
  if (paths.length === 0) return []
  const names = paths.filter((path) => NAME.test(path)).slice(0, MAX_NAMES)
  return [`members_ignored; count=${paths.length}; names="${names.join(' ')}"`]
}
