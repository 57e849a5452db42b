/** Takes a reply that goes to no client's connection of its own: that of a detached work, or of a message of a socket. */
export interface ReplyTaker {
  /** Before any of the body, where the reply has a content type. */
  onType(contentType: string): void
  /** The chunk's memory is reused after the call. @returns false to have the reply wait */
  onData(chunk: string | Buffer): boolean
  onEnd(): void
  /** The reply broke off: what came of it is not whole. */
  onCut(): void
}
