/** Which status becomes which, written as `500=503,502=503`. */

export class StatusMap {
  private from: i32[] = []
  private to: i32[] = []

  constructor(text: string) {
    const pairs = text.split(',')
    for (let i = 0; i < pairs.length; i++) {
      const sides = pairs[i].trim().split('=')
      assert(sides.length == 2 && isStatus(sides[0]) && isStatus(sides[1]), `${pairs[i]} maps no status to another`)
      this.from.push(I32.parseInt(sides[0]))
      this.to.push(I32.parseInt(sides[1]))
    }
  }

  /** 0 when the status stays. */
  of(status: i32): i32 {
    const at = this.from.indexOf(status)
    return at < 0 ? 0 : this.to[at]
  }
}

/** Errors stay errors: nothing below 400 on either side. */
function isStatus(text: string): bool {
  if (text.length != 3) return false
  const status = I32.parseInt(text)
  return status >= 400 && status <= 599 && status.toString() == text
}
