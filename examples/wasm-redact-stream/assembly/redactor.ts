/** Replaces secrets in text that arrives in pieces. */

const REPLACEMENT = '[redacted]'

export class Redactor {
  /** End of the text so far that may be the beginning of a secret. */
  tail: string = ''

  constructor(private secrets: string[]) {}

  /** @returns what is decided of a text that goes on; the rest is in `tail` */
  next(text: string): string {
    return this.redact(text, false)
  }

  /** @returns all of a text that does not go on: nothing can make the end of it a longer secret */
  last(text: string): string {
    return this.redact(text, true)
  }

  /** The first secret counts, and of those that begin there the longest, also when it is still to come. */
  private redact(text: string, isLast: bool): string {
    let decided = ''
    let at = 0
    let copied = 0
    while (at < text.length) {
      if (!isLast && this.mayBeginAt(text, at)) break
      const length = this.secretAt(text, at)
      if (length == 0) {
        at++
        continue
      }
      decided += text.substring(copied, at) + REPLACEMENT
      at += length
      copied = at
    }
    this.tail = text.substring(at)
    return decided + text.substring(copied, at)
  }

  /** Length of the longest secret that stands there; 0 for none. */
  private secretAt(text: string, at: i32): i32 {
    let length = 0
    for (let i = 0; i < this.secrets.length; i++) {
      const secret = this.secrets[i]
      if (secret.length > length && isAt(text, at, secret, secret.length)) length = secret.length
    }
    return length
  }

  /** Whether all that follows is the beginning of a secret. */
  private mayBeginAt(text: string, at: i32): bool {
    const left = text.length - at
    for (let i = 0; i < this.secrets.length; i++) {
      const secret = this.secrets[i]
      if (left < secret.length && isAt(text, at, secret, left)) return true
    }
    return false
  }
}

/** Whether the first `length` units of a secret stand there; makes no strings, this runs for every letter. */
function isAt(text: string, at: i32, secret: string, length: i32): bool {
  if (text.length - at < length) return false
  for (let i = 0; i < length; i++) if (text.charCodeAt(at + i) != secret.charCodeAt(i)) return false
  return true
}
