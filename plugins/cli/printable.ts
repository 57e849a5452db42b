/** Words of workers, modules and tool servers on their way to a terminal. */

/** What is left of a text that may steer the terminal: control characters become blanks, ends of lines stay. */
export function printable(text: string): string {
  return text.replace(/[^\P{Cc}\n]/gu, ' ')
}
