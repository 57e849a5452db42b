/** Tokens of a shared limit that are not in stock: ask control for them and try again. */
import type { SharedBucket } from './shared-bucket.ts'

export class TokenShortage {
  readonly bucket: SharedBucket
  readonly tokens: number

  constructor(bucket: SharedBucket, tokens: number) {
    this.bucket = bucket
    this.tokens = tokens
  }
}
