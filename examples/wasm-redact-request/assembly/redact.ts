/** Replaces e-mail addresses, card numbers and telephone numbers in a text. */

const MAX_DIGITS = 19

export class Findings {
  count: i32 = 0
}

export function redact(text: string, findings: Findings): string {
  let result = ''
  let copied = 0
  for (let at = 0; at < text.length; ) {
    const unit = text.charCodeAt(at)
    let end = 0
    let label = ''
    if (unit == 0x40) {
      const start = localPartStart(text, at, copied)
      end = domainEnd(text, at + 1)
      if (start < at && end > 0) {
        at = start
        label = '[email]'
      }
    } else if (isDigit(unit) || ((unit == 0x2b || unit == 0x28) && isDigit(unitAt(text, at + 1)))) {
      const run = new DigitRun(text, at, copied)
      label = run.label
      if (label.length == 0) {
        at = run.end
        continue
      }
      end = run.end
    }
    if (label.length == 0) {
      at++
      continue
    }
    result += text.substring(copied, at) + label
    copied = at = end
    findings.count++
  }
  return copied == 0 ? text : result + text.substring(copied)
}

/** Digits with at most two signs between them, as people write numbers. */
class DigitRun {
  readonly label: string
  readonly end: i32

  /** @param least nothing in front of this place counts: it has been taken out */
  constructor(text: string, start: i32, least: i32) {
    const hasPlus = text.charCodeAt(start) == 0x2b
    let digits = ''
    let count = 0
    let groups = 0
    let shortest = i32.MAX_VALUE
    let groupStart = start
    let isCardLike = true
    let end = start
    for (let at = start; at < text.length && at - end <= 2; at++) {
      const unit = text.charCodeAt(at)
      if (isDigit(unit)) {
        if (at > end || count == 0) {
          if (count > 0) shortest = min(shortest, end - groupStart)
          for (let i = end; i < at; i++) if (!isCardSeparator(text.charCodeAt(i))) isCardLike = false
          groupStart = at
          groups++
        }
        // No number of interest is longer; a prompt of a million digits is not collected.
        if (count < MAX_DIGITS) digits += text.charAt(at)
        count++
        end = at + 1
      } else if (!isSeparator(unit) && at > start) break
    }
    shortest = min(shortest, end - groupStart)
    // Part of a word, or of a longer number with other signs, such as a version.
    const isWord = (start > least && isWordUnit(text.charCodeAt(start - 1))) || isWordUnit(unitAt(text, end))
    this.end = end
    if (isWord || count > MAX_DIGITS) this.label = ''
    else if (isCardLike && count >= 13 && isLuhn(digits)) this.label = '[card]'
    else if (hasPlus) this.label = count >= 8 && count <= 15 ? '[phone]' : ''
    else this.label = isNational(digits, groups, shortest) ? '[phone]' : ''
  }
}

/** Ten digits in groups, such as 555-123-4567, or eleven with a 0 or 1 in front. */
function isNational(digits: string, groups: i32, shortest: i32): bool {
  if (groups < 2) return false
  if (digits.length == 10) return shortest > 1
  return digits.length == 11 && (digits.startsWith('1') || digits.startsWith('0'))
}

/** The check digit of card numbers (ISO/IEC 7812-1 annex B). */
function isLuhn(digits: string): bool {
  let sum = 0
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - 0x30
    const weighted = i % 2 == 1 ? digit * 2 : digit
    sum += weighted > 9 ? weighted - 9 : weighted
  }
  return sum % 10 == 0
}

function localPartStart(text: string, at: i32, least: i32): i32 {
  while (at > least && isLocalUnit(text.charCodeAt(at - 1))) at--
  return at
}

/** Behind a domain with at least one dot and a last part of two letters or more; 0 when there is none. */
function domainEnd(text: string, start: i32): i32 {
  let at = start
  let lastDot = -1
  while (at < text.length && (isAlphanumeric(text.charCodeAt(at)) || isJoint(text.charCodeAt(at)))) {
    if (text.charCodeAt(at) == 0x2e) lastDot = at
    at++
  }
  // A full stop or hyphen behind the address is no part of it.
  while (at > start && isJoint(text.charCodeAt(at - 1))) {
    at--
    if (at == lastDot) lastDot = text.lastIndexOf('.', at - 1)
  }
  return lastDot > start && at - lastDot > 2 ? at : 0
}

function unitAt(text: string, at: i32): i32 {
  return at >= 0 && at < text.length ? text.charCodeAt(at) : 0
}

function isDigit(unit: i32): bool {
  return unit >= 0x30 && unit <= 0x39
}

function isAlphanumeric(unit: i32): bool {
  const lower = unit | 0x20
  return isDigit(unit) || (lower >= 0x61 && lower <= 0x7a) || unit >= 0x80
}

function isJoint(unit: i32): bool {
  return unit == 0x2e || unit == 0x2d
}

function isLocalUnit(unit: i32): bool {
  return isAlphanumeric(unit) || isJoint(unit) || unit == 0x5f || unit == 0x25 || unit == 0x2b
}

function isSeparator(unit: i32): bool {
  return unit == 0x20 || isJoint(unit) || unit == 0x28 || unit == 0x29 || unit == 0x2f
}

function isCardSeparator(unit: i32): bool {
  return unit == 0x20 || unit == 0x2d
}

function isWordUnit(unit: i32): bool {
  return isAlphanumeric(unit) || unit == 0x5f
}
