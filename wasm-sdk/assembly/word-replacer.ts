/** Replaces words in text that arrives in pieces. */

export class WordReplacer {
  /** End of the last text, which may be the beginning of a word. */
  tail: string = ''

  /** @param words empty ones are ignored */
  constructor(
    private words: string[],
    private replacement: string,
  ) {}

  /**
   * Replaces words from left to right, at each position the longest, even if its end is in a later piece.
   *
   * @param isLast nothing follows that could complete a word
   * @returns the text that is decided; the rest is in `tail`
   */
  replace(text: string, isLast: bool): string {
    let decided = ''
    let at = 0
    let copied = 0
    while (at < text.length) {
      if (!isLast && this.mayBeginAt(text, at)) break
      const length = this.wordAt(text, at)
      if (length == 0) {
        at++
        continue
      }
      decided += text.substring(copied, at) + this.replacement
      at += length
      copied = at
    }
    this.tail = text.substring(at)
    return decided + text.substring(copied, at)
  }

  /** Length of the longest word at that position; 0 if there is none. */
  private wordAt(text: string, at: i32): i32 {
    let length = 0
    for (let i = 0; i < this.words.length; i++) {
      const word = this.words[i]
      if (word.length > length && isAt(text, at, word, word.length)) length = word.length
    }
    return length
  }

  /** Returns true if the rest of the text is the beginning of a word. */
  private mayBeginAt(text: string, at: i32): bool {
    const left = text.length - at
    for (let i = 0; i < this.words.length; i++) {
      const word = this.words[i]
      if (left < word.length && isAt(text, at, word, left)) return true
    }
    return false
  }
}

/** Returns true if the first `length` units of a word are at that position; creates no strings, since it runs for every letter. */
function isAt(text: string, at: i32, word: string, length: i32): bool {
  if (text.length - at < length) return false
  for (let i = 0; i < length; i++) if (text.charCodeAt(at + i) != word.charCodeAt(i)) return false
  return true
}
