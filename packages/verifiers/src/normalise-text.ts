/**
 * The one rule by which texts are equal up to what an editor does on its own.
 */

/**
 * Line ends become LF (CRLF and a lone CR alike); blanks at line ends and blank lines at the end are dropped.
 *
 * @example
 * normaliseText("a \r\nb\n\n"); // "a\nb"
 */
export function normaliseText(text: string): string {
  return text
    .replace(/\r\n?/g, "\n")
    .replace(/[ \t]+$/gm, "")
    .replace(/\n+$/, "");
}
