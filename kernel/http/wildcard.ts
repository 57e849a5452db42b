/** The part of a path that a route's `*` stands for. */

/** @param pattern of the route; ends with a slash and a star. @returns percent-encoded as received, without the slash */
export function wildcardRest(path: string, pattern: string): string {
  let at = -1
  for (let slash = pattern.indexOf('/'); slash >= 0; slash = pattern.indexOf('/', slash + 1)) {
    at = path.indexOf('/', at + 1)
    if (at < 0) return ''
  }
  return path.slice(at + 1)
}
