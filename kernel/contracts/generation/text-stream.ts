/** The text view of an answer: what `onText` hooks see of it, the same for every client format and every kind of worker. */

/** One contiguous text of an answer. A text that continues behind a tool call or a break is a further one. */
export interface TextStream {
  /**
   * `tool_output`: a text of the result of a tool that the gateway or the vendor ran, its error message included; the model gets
   * what the gateway's tools returned as edited too. `citation`: a text of a source, such as its title, address or quotation.
   * Texts of both are whole.
   */
  readonly kind: 'text' | 'reasoning' | 'refusal' | 'tool_arguments' | 'tool_output' | 'citation'
  /** Index of the choice, 0-based. */
  readonly choice: number
  /** The call that arguments or output belong to; null for other kinds. */
  readonly call: { readonly id: string; readonly name: string } | null
}

/** Opens the editor of a text; none leaves it as it is. */
export type TextEditors = (stream: TextStream) => TextEditor | null | undefined | void

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
