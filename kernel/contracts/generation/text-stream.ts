/** The text view of an answer: what `onText` hooks see of it, the same for every client format and every kind of worker. */

/** One contiguous text of an answer. A text that continues behind a tool call or a break is a further one. */
export interface TextStream {
  readonly kind: 'text' | 'reasoning' | 'refusal' | 'tool_arguments'
  /** Index of the choice, 0-based. */
  readonly choice: number
  /** The call that the arguments belong to; null for other kinds. */
  readonly call: { readonly id: string; readonly name: string } | null
}

/** Edits one text. What it returns is what the client, the tools of the gateway and the store get, in every place. */
export interface TextEditor {
  /**
   * Takes the next piece, decoded; arguments are JSON text as the model wrote it, and must remain valid JSON. Text that is
   * not returned is held back: return it with a later piece. Called once with `isLast` at the end, unless the answer fails.
   *
   * @param text may be empty with `isLast`
   * @returns the text to pass on now; empty for none yet
   */
  edit(text: string, isLast: boolean): string | Promise<string>
}
